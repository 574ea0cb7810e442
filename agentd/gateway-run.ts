import type { ChildProcess } from 'node:child_process'
import type { PluginFailure } from './plugins.ts'
import type { StartRequest } from './protocol.ts'

/** A run of the gateway: from a request to start it until another one. */
export class Run {
  request: StartRequest
  readonly abort = new AbortController()
  startedAt = performance.now()
  ended: Promise<void> = Promise.resolve()
  /** The gateway's process. */
  child: ChildProcess | undefined
  /** The spare gateway has a new owner, whose settings it does not have yet. */
  isChangingHands = false
  /** The plugins that could not be installed; undefined until the attempt, which is made once per run. */
  missing: PluginFailure[] | undefined
  wasReady = false
  /** The reason why the agent cannot reply although its gateway runs. */
  lack: string | null = null

  constructor(request: StartRequest) {
    this.request = request
  }

  /** The run of a spare becomes its owner's. @returns the spare's process. */
  handOver(request: StartRequest): ChildProcess {
    if (!this.child) throw new Error('the spare has no process')
    this.request = request
    this.startedAt = performance.now()
    this.wasReady = false
    this.isChangingHands = true
    return this.child
  }

  get aborted(): boolean {
    return this.abort.signal.aborted
  }
}

/** Problems that did not keep the gateway from starting. */
export function warningOf({ missing = [], lack }: Run): string | null {
  return [...missing.map(({ reason }) => reason), ...(lack === null ? [] : [lack])].join('; ') || null
}
