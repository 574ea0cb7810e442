import type { DiskWatch } from './disk.ts'
import type { Gateway } from './gateway.ts'
import type { AgentdConfig, AgentStatus } from './protocol.ts'
import type { Scripts } from './scripts.ts'
import { queryNumber, type Service } from './server.ts'
import type { TaskWatch } from './tasks.ts'
import type { UsageWatch } from './usage.ts'

const MAX_WAIT_MS = 60_000

interface Parts {
  gateway: Gateway
  scripts: Scripts
  disk: DiskWatch
  tasks: TaskWatch
  usage: UsageWatch
  epoch(): number
}

/** Holds the state of the agent, and waits for changes. */
export class Status {
  readonly #config: AgentdConfig
  readonly #startedAt = new Date()
  /**
   * Starts with the time, so that it also grows from one agentd to the next, which readers must be able to tell apart.
   */
  #version = Date.now()
  readonly #waiting = new Set<() => void>()

  constructor(config: AgentdConfig) {
    this.#config = config
  }

  /** Called when something in {@link Status.read} has changed. */
  changed(): void {
    this.#version++
    for (const wake of this.#waiting) wake()
    this.#waiting.clear()
  }

  read({ gateway, scripts, disk, tasks, usage, epoch }: Parts): AgentStatus {
    return {
      agentId: this.#config.agentId,
      version: this.#version,
      epoch: epoch(),
      startedAt: this.#startedAt.toISOString(),
      gateway: gateway.status,
      scripts: scripts.status,
      disk: disk.status,
      taskRuns: tasks.count,
      memory: usage.memory,
    }
  }

  /** Resolves when the version differs from `seen`, after `ms`, or when `signal` fires. */
  async wait(seen: number, ms: number, signal: AbortSignal): Promise<void> {
    if (this.#version !== seen || signal.aborted) return
    await new Promise<void>((resolve) => {
      const done = () => {
        clearTimeout(timer)
        signal.removeEventListener('abort', done)
        this.#waiting.delete(done)
        resolve()
      }
      const timer = setTimeout(done, ms)
      signal.addEventListener('abort', done)
      this.#waiting.add(done)
    })
  }
}

/** `GET /v1/status?wait=<ms>&version=<seen>`: responds at once, or as soon as the version differs from `seen`. */
export function statusService(status: Status, parts: Parts): Service {
  return {
    routes: [
      {
        method: 'GET',
        path: '/v1/status',
        async handle({ url, signal }) {
          const wait = queryNumber(url, 'wait', 0, MAX_WAIT_MS)
          if (wait > 0) await status.wait(queryNumber(url, 'version', 0), wait, signal)
          return { body: status.read(parts) }
        },
      },
    ],
  }
}
