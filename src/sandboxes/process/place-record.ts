import type { RunAs } from '../../lib/process/system-user.ts'
import type { Wall } from '../walls.ts'
import type { CommonView } from './wall.ts'

/** Where process agents live and what they run, as `place.ts` determined at startup. */
export interface Place {
  /** Folder of the agents. */
  agentsDir: string
  /** Folder of installed engine versions. */
  enginesDir: string
  /** The system user that agents run as; empty for Berth's own. */
  user: RunAs
  /** The Node binary for agents. */
  node: string
  /** agentd's `main.ts`. */
  agentd: string
  /**
   * Folder of Node's compile cache for agentd; undefined if none could be created, in which case agentd starts more
   * slowly.
   */
  compileCache: string | undefined
  wall: Wall
  /** Why agents have no namespaces; undefined if they do not need them, or have them. */
  whyNoNamespaces: string | undefined
  /** The view of agents inside namespaces; undefined without namespaces. */
  view: CommonView | undefined
  /**
   * If Berth runs as root, agents have their own /tmp: the empty folder to mount it on, and what they need below the
   * machine's /tmp.
   */
  privateTmp: { stage: string; needed: string[] } | undefined
  /** The needs of the engine that are not met here; null if all are met. */
  unmetNeed: string | null
}
