import { randomUUID } from 'node:crypto'
import { open, opendir, readFile, rename, rm, rmdir } from 'node:fs/promises'
import { AgentdError, isErrno } from './agentd-errors.ts'
import { SKILLS_FOLDER, type SkillFiles, type SkillFolder } from './protocol.ts'
import { Mutex } from './repository/repository.ts'
import type { Agent, Call, RouteResponse, Service } from './server.ts'
import { absent, checkFiles, compareFolder, type Hashes, type Place, sha256 } from './skill-files.ts'
import { inFolder, makeFolder, openBelow, refuse } from './tree.ts'

const NAME = /^(@[\w-]{1,64}\/)?[\w-]{1,64}$/
const BODY_BYTES = 16_777_216
const RECORD_BYTES = 4_194_304
/** Maximum number of folders checked in a root; agents have at most a few dozen. */
const MAX_FOLDERS = 1000
/** Folder for new folders before they are moved into place, and for replaced ones; emptied by `filesService`. */
const STAGING = '.agentd'
/**
 * The record of the skills that Berth put there. It is outside the agent's root, so that neither its git nor a careless
 * clean-up removes it.
 */
const RECORD = ['.berth', 'skills.json'] as const

interface Entry {
  cid: string
  files: Record<string, string>
}

/** `GET /v1/skills`, `PUT` and `DELETE /v1/skills/<name>`: the folders of skills below the agent's root. */
export function skillsService(agent: Agent): Service {
  const skills = new Skills(agent)
  return {
    routes: [
      { method: 'GET', path: '/v1/skills', handle: () => skills.list() },
      { method: 'PUT', path: '/v1/skills/*', fenced: true, handle: (call) => skills.put(call) },
      { method: 'DELETE', path: '/v1/skills/*', fenced: true, handle: (call) => skills.remove(call) },
    ],
  }
}

class Skills {
  readonly #root: string
  readonly #home: string
  /** Changes run one after another, because each reads and writes the record. */
  readonly #turn = new Mutex()

  constructor({ paths }: Agent) {
    this.#root = paths.root
    this.#home = paths.home
  }

  async list(): Promise<RouteResponse> {
    const record = await this.#readRecord()
    const names = new Set([...record.keys(), ...(await this.#foldersThere())])
    const skills: SkillFolder[] = []
    for (const name of [...names].sort()) {
      const entry = record.get(name)
      skills.push({ name, cid: entry?.cid ?? null, state: await this.#stateOf(name, entry) })
    }
    return { body: { skills } }
  }

  async put(call: Call): Promise<RouteResponse> {
    const name = nameOf(call)
    const request = await call.json<SkillFiles>(BODY_BYTES)
    const files = checkFiles(request)
    return this.#turn.run(() => this.#put(name, request, files))
  }

  remove(call: Call): Promise<RouteResponse> {
    const name = nameOf(call)
    return this.#turn.run(async () => {
      const record = await this.#readRecord()
      if (record.delete(name)) {
        await this.#moveAway(name)
        await this.#writeRecord(record)
      }
      return { body: {} }
    })
  }

  async #put(
    name: string,
    { cid, resolution }: SkillFiles,
    files: Map<string, Buffer>,
  ): Promise<RouteResponse> {
    const record = await this.#readRecord()
    const hashes: Hashes = new Map([...files].map(([path, bytes]) => [path, sha256(bytes)]))
    const there = await compareFolder(this.#root, placeOf(name), hashes)
    const isLost = there === 'different' && (await this.#stateOf(name, record.get(name))) !== 'same'
    if (isLost && resolution === undefined)
      throw new AgentdError('conflict', `skills/${name} is not as Berth has put it there`)
    if (there !== 'same' && !(isLost && resolution === 'keep')) await this.#write(name, files)
    record.set(name, { cid, files: Object.fromEntries(hashes) })
    await this.#writeRecord(record)
    const answer: SkillFolder = { name, cid, state: await this.#stateOf(name, record.get(name)) }
    return { body: answer }
  }

  /** Writes the folder aside and moves it into place; moves an existing one away. */
  async #write(name: string, files: Map<string, Buffer>): Promise<void> {
    const part = randomUUID()
    try {
      for (const [path, bytes] of files) await this.#writeFile([STAGING, part, ...path.split('/')], bytes)
      await this.#moveAway(name)
      await using staging = await makeFolder(this.#home, [STAGING])
      const place = placeOf(name)
      await using parent = await makeFolder(this.#root, place.slice(0, -1))
      await rename(inFolder(staging, part), inFolder(parent, place.at(-1) as string)).catch((error) => {
        if (!isErrno(error, 'EEXIST', 'ENOTEMPTY', 'ENOTDIR')) throw error
        throw new AgentdError('conflict', `skills/${name} was recreated in the meantime`)
      })
      await parent.sync()
    } catch (error) {
      await this.#discard(part)
      refuse(error)
    }
  }

  async #writeFile(names: string[], bytes: Buffer): Promise<void> {
    await using folder = await makeFolder(this.#home, names.slice(0, -1))
    // UnixFS keeps no modes: a file that names its interpreter (`#!`) becomes executable.
    const mode = bytes.subarray(0, 2).toString('latin1') === '#!' ? 0o755 : 0o644
    const opened = open(inFolder(folder, names.at(-1) as string), 'wx', mode)
    await using file = await opened.catch((error) => {
      if (!isErrno(error, 'EEXIST')) throw error
      throw new AgentdError('bad_request', 'files: one is the folder of another')
    })
    await file.writeFile(bytes)
    await file.sync()
  }

  /** Removes a folder, or whatever replaced it, atomically for readers. */
  async #moveAway(name: string): Promise<void> {
    const place = placeOf(name)
    const old = randomUUID()
    {
      await using parent = await makeFolder(this.#root, place.slice(0, -1))
      await using staging = await makeFolder(this.#home, [STAGING])
      await rename(inFolder(parent, place.at(-1) as string), inFolder(staging, old)).catch(
        (error) => isErrno(error, 'ENOENT') || refuse(error),
      )
    }
    await this.#discard(old)
    const [, owner] = place
    if (place.length === 2 || owner === undefined) return
    await using skills = await makeFolder(this.#root, [SKILLS_FOLDER])
    // Removes the owner's folder if it has no other skill.
    await rmdir(inFolder(skills, owner)).catch(() => {})
  }

  async #discard(staged: string): Promise<void> {
    await using staging = await makeFolder(this.#home, [STAGING])
    await rm(inFolder(staging, staged), { recursive: true, force: true }).catch(() => {})
  }

  async #stateOf(name: string, entry: Entry | undefined): Promise<SkillFolder['state']> {
    if (!entry) return 'modified'
    const likeness = await compareFolder(this.#root, placeOf(name), new Map(Object.entries(entry.files)))
    if (likeness === 'none') return 'missing'
    return likeness === 'same' ? 'same' : 'modified'
  }

  /** Names of folders in the root's `skills`, and in those of owners. */
  async #foldersThere(): Promise<string[]> {
    const names: string[] = []
    for (const name of await foldersIn(this.#root, [SKILLS_FOLDER])) {
      if (!name.startsWith('@')) names.push(name)
      else
        for (const below of await foldersIn(this.#root, [SKILLS_FOLDER, name])) names.push(`${name}/${below}`)
    }
    return names.filter((name) => NAME.test(name)).slice(0, MAX_FOLDERS)
  }

  /** Empty if there is none, or a malformed one: then folders with the expected content are adopted. */
  async #readRecord(): Promise<Map<string, Entry>> {
    try {
      await using file = await openBelow(this.#home, [...RECORD])
      const stats = await file.stat()
      if (!stats.isFile() || stats.size > RECORD_BYTES) return new Map()
      const record = Object.entries(JSON.parse(await readFile(file, 'utf8')))
      return new Map(
        record.filter((entry): entry is [string, Entry] => NAME.test(entry[0]) && isEntry(entry[1])),
      )
    } catch {
      return new Map()
    }
  }

  async #writeRecord(record: Map<string, Entry>): Promise<void> {
    const [folderName, fileName] = RECORD
    await using folder = await makeFolder(this.#home, [folderName])
    const part = inFolder(folder, `${randomUUID()}.part`)
    try {
      await using file = await open(part, 'wx', 0o600)
      await file.writeFile(JSON.stringify(Object.fromEntries(record)))
      await file.sync()
      await rename(part, inFolder(folder, fileName))
    } catch (error) {
      await rm(part, { force: true }).catch(() => {})
      refuse(error)
    }
  }
}

const placeOf = (name: string): Place => [SKILLS_FOLDER, ...name.split('/')]

/** @throws AgentdError bad_request */
function nameOf({ rest }: Call): string {
  let name = ''
  try {
    name = decodeURIComponent(rest)
  } catch {}
  if (!NAME.test(name)) throw new AgentdError('bad_request', 'the path names no skill')
  return name
}

function isEntry(value: unknown): value is Entry {
  const { cid, files } = (value ?? {}) as Partial<Entry>
  return typeof cid === 'string' && typeof files === 'object' && files !== null
}

async function foldersIn(root: string, names: string[]): Promise<string[]> {
  const opened = await openBelow(root, names).catch(absent)
  if (!opened) return []
  await using folder = opened
  const entries = await opendir(inFolder(folder, '.')).catch(absent)
  const found: string[] = []
  if (!entries) return found
  for await (const entry of entries) {
    if (entry.isDirectory()) found.push(entry.name)
    if (found.length >= MAX_FOLDERS) break
  }
  return found
}
