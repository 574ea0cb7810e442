import { readdir, readFile } from 'node:fs/promises'
import type { DiskWatch } from './disk.ts'
import { memoryLimit } from './memory.ts'
import { markedProcesses } from './processes.ts'
import type { AgentStatus, UsageAnswer, UsageSample } from './protocol.ts'
import type { Service } from './server.ts'

const EVERY_MS = 15_000
/** One hour of samples. */
const KEPT = 240
/** Time units of /proc, the same on every Linux that Node supports. */
const TICKS_PER_SECOND = 100
const PAGE_BYTES = 4096
const AT_ONCE = 16

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
    : await allPids()
  const found: Found = {
    at: Date.now(),
    tickMs: performance.now(),
    memoryBytes: 0,
    cpuSeconds: 0,
    processes: 0,
  }
  const add = async (pid: number) => {
    const stat = await readFile(`/proc/${pid}/stat`, 'latin1').catch(() => '')
    // After the name, which may contain anything.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    if (fields.length < 22) return
    const ticks = [11, 12, 13, 14].reduce((sum, index) => sum + Number(fields[index]), 0)
    found.cpuSeconds += ticks / TICKS_PER_SECOND
    found.memoryBytes += Number(fields[21]) * PAGE_BYTES
    found.processes++
  }
  while (pids.length > 0) await Promise.all(pids.splice(0, AT_ONCE).map(add))
  return found
}

async function allPids(): Promise<number[]> {
  const names = await readdir('/proc').catch(() => [])
  return names.filter((name) => /^\d+$/.test(name)).map(Number)
}
