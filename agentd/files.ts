import { randomUUID } from 'node:crypto'
import { constants, rmSync, type Stats } from 'node:fs'
import { type FileHandle, lstat, open, opendir, rename, rm, unlink } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { join, relative, resolve } from 'node:path/posix'
import { pipeline } from 'node:stream/promises'
import { AgentdError, isErrno } from './agentd-errors.ts'
import { AGENT_ROOT, type FileEntry, type FileWritten } from './protocol.ts'
import { Mutex } from './repository/repository.ts'
import { type Agent, type Call, queryNumber, type RouteResponse, type Service } from './server.ts'
import { inFolder, makeFolder, openBelow, refuse } from './tree.ts'

/** The longest path that Linux accepts. */
const PATH_BYTES = 4096
const LIST_ENTRIES = 10_000
/** A larger folder is listed only this far, in no particular order. */
const SCANNED_ENTRIES = 100_000
/**
 * Folder in which files are written before they are moved into place. It is below the home, so that the move is atomic.
 */
const STAGING = '.agentd'
/** Bytes to read of a body that is too long: a client that is still sending would not see the refusal. */
const DISCARDED_BYTES = 67_108_864

/** `GET`, `PUT`, `DELETE /v1/file` and `GET /v1/list`: everything below the agent's root, including links. */
export function filesService({ paths, log }: Agent): Service {
  try {
    // Files that a killed agentd left incomplete.
    rmSync(join(paths.home, STAGING), { recursive: true, force: true })
  } catch (error) {
    // The agent may have closed a folder in there, and must stay reachable all the same.
    log.warn(`incomplete files stay: ${(error as Error).message}`)
  }
  const placing = new Mutex()
  return {
    routes: [
      { method: 'GET', path: '/v1/file', handle: (call) => read(paths.root, call) },
      { method: 'PUT', path: '/v1/file', handle: (call) => write(paths, placing, call) },
      { method: 'DELETE', path: '/v1/file', handle: (call) => remove(paths.root, call) },
      { method: 'GET', path: '/v1/list', handle: (call) => list(paths.root, call) },
    ],
  }
}

async function read(root: string, { url, res }: Call): Promise<undefined> {
  const max = queryNumber(url, 'max', Number.MAX_SAFE_INTEGER)
  await using file = await openBelow(root, pathNames(url))
  const stats = await file.stat()
  if (!stats.isFile()) throw new AgentdError('not_a_file', 'path: is of another kind')
  if (stats.size > max) throw new AgentdError('too_large', `more than ${max} bytes`)
  res.writeHead(200, {
    'content-type': 'application/octet-stream',
    'content-length': stats.size,
    etag: versionOf(stats),
  })
  if (stats.size === 0) return void res.end()
  // Leaves out bytes appended during the transfer. A file cut during the transfer has fewer bytes than content-length
  // announced.
  const content = file.createReadStream({ start: 0, end: stats.size - 1, autoClose: false })
  await pipeline(content, res, { end: false })
  if (content.bytesRead < stats.size) res.destroy()
  else res.end()
}

/** Changes whenever the content does, because every write creates a new file. */
const versionOf = ({ ino, size, mtimeMs }: Stats): string => `"${ino}-${size}-${mtimeMs}"`

async function write(paths: Agent['paths'], placing: Mutex, { url, req }: Call): Promise<RouteResponse> {
  const max = queryNumber(url, 'max', Number.MAX_SAFE_INTEGER)
  const { names, name } = placeOf(url)
  await using folder = await makeFolder(paths.root, names)
  await using staging = await makeFolder(paths.home, [STAGING])
  const path = inFolder(staging, randomUUID())
  try {
    const size = await fill(path, await modeOf(inFolder(folder, name)), req, max)
    const place = inFolder(folder, name)
    const version = versionOf(await lstat(path))
    // Two writers may have seen the same version: the second one gets an error.
    await placing.run(async () => {
      await requireVersion(place, url.searchParams.get('version'))
      await rename(path, place)
    })
    await folder.sync()
    const body: FileWritten = { path: [AGENT_ROOT, ...names, name].join('/'), size, version }
    return { body }
  } catch (error) {
    await unlink(path).catch(() => {})
    return refuse(error)
  }
}

/** @param version that the caller saw; empty if there was no file, null if any version will do. */
async function requireVersion(path: string, version: string | null): Promise<void> {
  if (version === null) return
  const stats = await lstat(path).catch((error) => (isErrno(error, 'ENOENT') ? undefined : refuse(error)))
  if ((stats ? versionOf(stats) : '') === version) return
  throw new AgentdError('conflict', 'path: was changed in the meantime')
}

async function remove(root: string, { url }: Call): Promise<RouteResponse> {
  const { names, name } = placeOf(url)
  await using folder = await openBelow(root, names)
  const place = inFolder(folder, name)
  try {
    await lstat(place)
    await rm(place, { recursive: true, force: true })
    await folder.sync()
  } catch (error) {
    return refuse(error)
  }
  return { body: {} }
}

/** Where `?path=` may be written. @throws AgentdError */
function placeOf(url: URL): { names: string[]; name: string } {
  const names = pathNames(url)
  const name = names.pop()
  if (name === undefined) throw new AgentdError('not_a_file', 'path: is the root')
  if ((names[0] ?? name) === '.git') throw new AgentdError('bad_request', 'path: belongs to git')
  return { names, name }
}

/** Writes the body into a new file, durably. @returns its size in bytes. */
async function fill(path: string, mode: number, req: IncomingMessage, max: number): Promise<number> {
  await using file = await open(path, constants.O_CREAT | constants.O_EXCL | constants.O_WRONLY, 0o600)
  let size = 0
  for await (const chunk of req.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size <= max) await writeAll(file, chunk)
    else if (size > max + DISCARDED_BYTES) break
  }
  if (size > max) throw new AgentdError('too_large', `more than ${max} bytes`)
  await file.chmod(mode)
  await file.sync()
  return size
}

async function writeAll(file: FileHandle, chunk: Buffer): Promise<void> {
  for (let done = 0; done < chunk.length; ) {
    const { bytesWritten } = await file.write(chunk, done)
    done += bytesWritten
  }
}

/** The permissions of the replaced file, so that a script stays executable. */
async function modeOf(path: string): Promise<number> {
  const stats = await lstat(path).catch((error) => (isErrno(error, 'ENOENT') ? undefined : refuse(error)))
  return stats?.isFile() ? stats.mode & 0o777 : 0o644
}

async function list(root: string, { url }: Call): Promise<RouteResponse> {
  const limit = queryNumber(url, 'limit', LIST_ENTRIES, LIST_ENTRIES)
  await using folder = await openBelow(root, pathNames(url))
  if (!(await folder.stat()).isDirectory()) throw new AgentdError('not_a_file', 'path: is not a folder')
  const names: string[] = []
  for await (const { name } of await opendir(inFolder(folder, '.'))) {
    if (names.push(name) > SCANNED_ENTRIES) break
  }
  names.sort()
  const entries = await Promise.all(names.slice(0, limit).map((name) => entry(folder, name)))
  return {
    body: { entries: entries.filter((found) => found !== undefined), truncated: names.length > limit },
  }
}

/** Undefined if it has just disappeared. */
async function entry(folder: FileHandle, name: string): Promise<FileEntry | undefined> {
  const stats = await lstat(inFolder(folder, name)).catch(() => undefined)
  if (!stats) return
  const type = stats.isFile()
    ? 'file'
    : stats.isDirectory()
      ? 'directory'
      : stats.isSymbolicLink()
        ? 'symlink'
        : 'other'
  return { name, type, size: stats.size, modifiedAt: stats.mtime.toISOString() }
}

/** The names from the root to the target of `?path=`, absolute or relative. */
function pathNames(url: URL): string[] {
  const path = resolve(AGENT_ROOT, url.searchParams.get('path') ?? '')
  if (path.includes('\0')) throw new AgentdError('bad_request', 'path: has a NUL')
  if (Buffer.byteLength(path) >= PATH_BYTES) throw new AgentdError('bad_request', 'path: too long')
  const way = relative(AGENT_ROOT, path)
  if (way === '') return []
  const names = way.split('/')
  if (names[0] === '..') throw new AgentdError('outside', 'path: leads out of the root')
  return names
}
