/** Processor time of a step and everything it started, read from a control group: a killed child counts as well. */
import { accessSync, constants, existsSync, mkdirSync, readFileSync, rmdirSync } from 'node:fs'
import { join } from 'node:path'

/** Version 1 has a tree for each controller. The group exists only in this tree, so that it changes no weights. */
const ROOTS = ['/sys/fs/cgroup/cpuacct', '/sys/fs/cgroup/cpu,cpuacct', '/sys/fs/cgroup']
const SAMPLE_MS = 1000

const root = ROOTS.find((dir) => existsSync(dir))

export class CpuMeter {
  readonly #dir: string | undefined
  /** Groups of containers: what they had used before, and at the last reading. */
  readonly #containers: { dir: string; before: number; last: number }[] = []
  readonly #sampler: NodeJS.Timeout | undefined

  /** @param containers control groups of the containers that the step starts. They may be gone when it ends. */
  constructor(name: string, containers: string[] = []) {
    try {
      accessSync(join(root ?? '', 'cgroup.procs'), constants.W_OK)
    } catch {
      return
    }
    this.#dir = join(root as string, `ci-${process.pid}-${name.replaceAll(/[^a-z0-9]/g, '-')}`)
    mkdirSync(this.#dir, { recursive: true })
    this.#containers = containers.map((group) => {
      const dir = join(root as string, group)
      return { dir, before: read(dir) ?? 0, last: 0 }
    })
    if (containers.length > 0) this.#sampler = setInterval(() => this.#sample(), SAMPLE_MS).unref()
  }

  /** The command prefix that puts a command into the group. */
  get prefix(): string[] {
    return this.#dir ? ['sh', '-c', 'echo $$ >"$0/cgroup.procs" && exec "$@"', this.#dir] : []
  }

  /**
   * Seconds so far; undefined if this user may not create control groups. Removes the group unless a process stays in
   * it.
   */
  stop(): number | undefined {
    if (!this.#dir) return undefined
    clearInterval(this.#sampler)
    this.#sample()
    const used = this.#containers.map(({ before, last }) => Math.max(0, last - before))
    const seconds = used.reduce((sum, one) => sum + one, read(this.#dir) ?? 0)
    try {
      rmdirSync(this.#dir)
    } catch {
      // A server that outlives the step, such as dockerd.
    }
    return seconds
  }

  #sample(): void {
    for (const group of this.#containers) group.last = read(group.dir) ?? group.last
  }
}

/** CPU seconds of a group; undefined if it does not exist. */
function read(dir: string): number | undefined {
  const [v1, v2] = [join(dir, 'cpuacct.usage'), join(dir, 'cpu.stat')]
  if (existsSync(v1)) return Number(readFileSync(v1, 'utf8')) / 1e9
  if (!existsSync(v2)) return undefined
  return Number(/usage_usec (\d+)/.exec(readFileSync(v2, 'utf8'))?.[1]) / 1e6
}
