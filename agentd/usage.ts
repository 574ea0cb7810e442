import type { DiskWatch } from './disk.ts'
import { memoryLimit } from './memory.ts'
import { allProcesses, markedProcesses, readProcesses } from './processes.ts'
import type { AgentStatus, UsageAnswer, UsageSample } from './protocol.ts'
import type { Service } from './server.ts'

const EVERY_MS = 15_000
/** One hour of samples. */
const KEPT = 240

/** The result of one measurement; the time of ended processes is counted with their parents'. */
interface Found {
  /** By the clock, which may be set. */
  at: number
  /** From `performance.now`. */
  tickMs: number
  memoryBytes: number
  cpuSeconds: number
  processes: number
}

/** Samples the usage of the agent's processes: resident memory, processor time, and the disk as last measured. */
export class UsageWatch {
  readonly #disk: Pick<DiskWatch, 'status'>
  readonly #samples: UsageSample[] = []
  #last: Found | undefined
  #timer: NodeJS.Timeout | undefined

  constructor(disk: Pick<DiskWatch, 'status'>) {
    this.#disk = disk
  }

  start(): void {
    const tick = async () => {
      await this.#sample().catch(() => {})
      this.#timer = setTimeout(tick, EVERY_MS).unref()
    }
    void tick()
  }

  stop(): void {
    clearTimeout(this.#timer)
  }

  get answer(): UsageAnswer {
    const { usedBytes, limitBytes } = this.#disk.status
    return {
      memoryLimitBytes: memoryLimit(),
      disk: { usedBytes, limitBytes },
      samples: this.#samples,
    }
  }

  /** Null until the first measurement. */
  get memory(): AgentStatus['memory'] {
    return this.#last ? { usedBytes: this.#last.memoryBytes, limitBytes: memoryLimit() } : null
  }

  async #sample(): Promise<void> {
    const now = await look()
    const before = this.#last
    this.#last = now
    // Processor usage is known after the second measurement.
    if (!before) return
    const cpuSeconds = Math.max(0, now.cpuSeconds - before.cpuSeconds)
    this.#samples.push({
      at: new Date(now.at).toISOString(),
      memoryBytes: now.memoryBytes,
      cpus: Math.round((cpuSeconds / ((now.tickMs - before.tickMs) / 1000)) * 1000) / 1000,
      diskBytes: this.#disk.status.usedBytes,
      processes: now.processes,
    })
    if (this.#samples.length > KEPT) this.#samples.shift()
  }
}

/** `GET /v1/usage`: the agent's usage in the last hour. */
export function usageService(usage: UsageWatch): Service {
  return {
    routes: [{ method: 'GET', path: '/v1/usage', handle: async () => ({ body: usage.answer }) }],
    async stop() {
      usage.stop()
    },
  }
}

/** Set by the process driver, with the sandbox's name; in a container every visible process is the agent's. */
const sandbox = process.env.BERTH_SANDBOX

async function look(): Promise<Found> {
  const pids = sandbox
    ? [process.pid, ...(await markedProcesses([`BERTH_SANDBOX=${sandbox}`]))]
    : await allProcesses()
  const found: Found = {
    at: Date.now(),
    tickMs: performance.now(),
    memoryBytes: 0,
    cpuSeconds: 0,
    processes: 0,
  }
  for (const { memoryBytes, cpuSeconds } of await readProcesses(pids)) {
    found.memoryBytes += memoryBytes
    found.cpuSeconds += cpuSeconds
    found.processes++
  }
  return found
}
