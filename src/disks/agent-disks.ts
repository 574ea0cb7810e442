/**
 * Agents' disks. Each is a subvolume named after its agent's id, in a quota group with the same number. Subvolumes that
 * the agent creates inside it count towards the same group. Calls may be repeated, and killed at any line.
 */
import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, readdir, readFile, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { AGENT_ID } from '../lib/agent-id.ts'
import { crashPoint } from '../lib/crash-point.ts'
import { judgeRoom, type Room, readRoom } from '../lib/disk.ts'
import { type Pool, run } from './pool.ts'

interface AgentDisk {
  agentId: string
  usedBytes: number
  /** Null if the disk has no limit. */
  limitBytes: number | null
}

/** All disks, and the space left for them. */
export interface DisksReport {
  disks: AgentDisk[]
  room: Room
}

/** The arguments that Docker needs to mount a disk. */
export interface DiskPlace {
  device: string
  /** Path in the file system of `device`. */
  subvolume: string
}

/** Thrown if there is no room for another disk. */
export class NoRoom extends Error {}

/** Folders for the disks and for disks being removed, next to whatever else the file system holds. */
const DISKS = 'berth-agents'
const REMOVED = 'berth-removed'

export class AgentDisks {
  readonly #pool: Pool
  readonly #reserveBytes: number | undefined
  #last: Promise<unknown> = Promise.resolve()
  #sweeping: Promise<void> | undefined

  private constructor(pool: Pool, reserveBytes: number | undefined) {
    this.#pool = pool
    this.#reserveBytes = reserveBytes
  }

  /** @param reserveBytes the space kept free for existing disks; undefined for the same reserve as on other disks. */
  static async open(pool: Pool, reserveBytes: number | undefined): Promise<AgentDisks> {
    for (const folder of [DISKS, REMOVED])
      await mkdir(join(pool.mount, folder), { recursive: true, mode: 0o711 })
    return new AgentDisks(pool, reserveBytes)
  }

  /** Creates the agent's disk if it does not exist. @param bytes the new limit; null for none. @throws NoRoom */
  ensure(agentId: string, bytes: number | null): Promise<DiskPlace> {
    return this.#alone(async () => {
      const { device, mount } = this.#pool
      const [subvolume, group] = [join(DISKS, agentId), groupOf(agentId)]
      const isNew = !existsSync(join(mount, subvolume))
      if (isNew && judgeRoom(await readRoom(mount), this.#reserveBytes) === 'down')
        throw new NoRoom('No space left: the disk of agents (BERTH_DISKS_MB) is down to its reserve')
      if (!existsSync(this.#folderOf(agentId))) await btrfs('qgroup', 'create', group, mount)
      await btrfs('qgroup', 'limit', bytes === null ? 'none' : String(bytes), group, mount)
      crashPoint('disk-after-limit')
      // Creates subvolume and group membership in one step.
      if (isNew) await btrfs('subvolume', 'create', '-i', group, join(mount, subvolume))
      else await makeWritable(join(mount, subvolume))
      return { device, subvolume }
    })
  }

  /** Removes the agent's disk. Resolves when its name is free; the space is freed in the background. */
  async remove(agentId: string): Promise<void> {
    const { mount } = this.#pool
    await this.#alone(async () => {
      if (!existsSync(join(mount, DISKS, agentId))) return
      // A full disk lacks the room even to remove a subvolume.
      await btrfs('qgroup', 'limit', 'none', groupOf(agentId), mount)
      await makeWritable(join(mount, DISKS, agentId))
      const removed = join(mount, REMOVED, `${agentId}-${randomUUID()}`)
      await rename(join(mount, DISKS, agentId), removed)
      crashPoint('disk-after-rename')
    })
    void this.sweep()
  }

  async read(): Promise<DisksReport> {
    void this.sweep()
    const names = await readdir(join(this.#pool.mount, DISKS))
    const disks = await Promise.all(
      names
        .filter((name) => AGENT_ID.test(name))
        .map(async (agentId) => {
          const [used, limit] = await Promise.all(
            ['referenced', 'max_referenced'].map((name) => this.#readFigure(agentId, name)),
          )
          return { agentId, usedBytes: used ?? 0, limitBytes: limit || null }
        }),
    )
    return { disks, room: await readRoom(this.#pool.mount) }
  }

  /** Continues pending removals. Never rejects: the next call resumes them. */
  sweep(): Promise<void> {
    this.#sweeping ??= this.#sweep()
      .catch(() => {})
      .finally(() => {
        this.#sweeping = undefined
      })
    return this.#sweeping
  }

  async #sweep(): Promise<void> {
    const { mount, qgroups } = this.#pool
    for (const name of await readdir(join(mount, REMOVED)))
      await removeSubvolumes(mount, join(REMOVED, name)).catch(() => {})
    for (const entry of await readdir(qgroups)) {
      const agentId = agentOf(entry)
      if (!agentId) continue
      await this.#alone(async () => {
        if (existsSync(join(mount, DISKS, agentId))) return
        // Fails until the kernel has freed the contents, which takes up to half a minute.
        await btrfs('qgroup', 'destroy', groupOf(agentId), mount).catch(() => {})
      })
    }
  }

  async #readFigure(agentId: string, name: string): Promise<number | undefined> {
    const text = await readFile(join(this.#folderOf(agentId), name), 'utf8').catch(() => undefined)
    return text === undefined ? undefined : Number(text)
  }

  #folderOf(agentId: string): string {
    return join(this.#pool.qgroups, groupOf(agentId).replace('/', '_'))
  }

  #alone<T>(work: () => Promise<T>): Promise<T> {
    const next = this.#last.then(work)
    this.#last = next.catch(() => {})
    return next
  }
}

const btrfs = (...args: string[]) => run('btrfs', args)

/** The level 1 quota group of an agent: its id, read as a base-36 number. */
const groupOf = (agentId: string) => `1/${Number.parseInt(agentId, 36)}`

function agentOf(folder: string): string | undefined {
  const number = /^1_(\d+)$/.exec(folder)?.[1]
  const agentId = Number(number).toString(36)
  return AGENT_ID.test(agentId) ? agentId : undefined
}

/**
 * Removes a subvolume and those that its agent created inside it, the inner ones first. Agents choose names that may
 * look like lines of btrfs, so each number is looked up before use: a path starts with a prefix that this program
 * chose.
 */
async function removeSubvolumes(mount: string, path: string): Promise<void> {
  for (;;) {
    const ids = await numbersBelow(mount, path)
    let removed = 0
    for (const id of ids) {
      const found = await btrfs('inspect-internal', 'subvolid-resolve', id, mount).catch(() => '')
      if (!found.startsWith(`${path}/`)) continue
      await makeWritable(join(mount, found.replace(/\n$/, '')))
      // A subvolume that contains others cannot be deleted yet; the next round retries it.
      await btrfs('subvolume', 'delete', '--subvolid', id, mount).then(
        () => removed++,
        () => {},
      )
    }
    if (removed === 0) break
  }
  await btrfs('subvolume', 'delete', join(mount, path))
}

/** Clears the read-only property of a subvolume, which its owner may have set. */
const makeWritable = (path: string) => btrfs('property', 'set', '-t', 'subvol', path, 'ro', 'false')

/** Numbers of subvolumes that may be below a path, youngest first: nested subvolumes are younger than their parents. */
async function numbersBelow(mount: string, path: string): Promise<string[]> {
  const lines = (await btrfs('subvolume', 'list', mount)).split('\n')
  return lines
    .filter((line) => line.includes(` path ${path}/`))
    .flatMap((line) => /^ID (\d+) /.exec(line)?.[1] ?? [])
    .reverse()
}
