import type { RunAs } from '../../lib/process/system-user.ts'
import type { Wall } from '../walls.ts'
import type { CommonView } from './wall.ts'

/** Where agents that are processes live and what they run, as `place.ts` found it at the start. */
export interface Place {
  /** Folder of the agents. */
  agentsDir: string
  /** Folder of installed engine versions. */
  enginesDir: string
  /** The system user that agents run as; empty for Berth's own. */
  user: RunAs
  /** The Node binary that they run. */
  node: string
  /** agentd's `main.ts`. */
  agentd: string
  /** Folder of Node's compile cache for agentd; undefined: none could be made, and agentd starts more slowly. */
  compileCache: string | undefined
  wall: Wall
  /** Why agents have no namespaces; undefined if they need none, or have them. */
  whyNoNamespaces: string | undefined
  /** The view of agents within namespaces; undefined without them. */
  view: CommonView | undefined
  /** Agents of root have a /tmp of their own: an empty folder on which it is made, and what they need below the machine's. */
  privateTmp: { stage: string; needed: string[] } | undefined
  /** The needs of the engine that are not met here; null if all are met. */
  unmetNeed: string | null
}
