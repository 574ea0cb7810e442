/** Reads commits of the repository as streams: changes, blobs, diffs, files. */
import { isUtf8 } from 'node:buffer'
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { AgentdError } from '../agentd-errors.ts'
import { type Call, queryNumber } from '../server.ts'
import { type Git, GitError } from './git.ts'
import { readObjects } from './objects.ts'
import type { BlobsRequest, TreeChange } from './protocol.ts'
import { rawDiff } from './raw-diff.ts'
import { EMPTY_TREE, exists, isId } from './repository.ts'

const MAX_BLOBS = 1000
const BLOBS_MS = 600_000
/** Number of paths whose sizes are requested at once. */
const AT_ONCE = 1000
const MAX_BYTES = 67_108_864
/** Limit of a text. It is held in memory, because its length and `truncated` are headers. */
const TEXT_BYTES = 16_777_216
const NDJSON = { 'content-type': 'application/x-ndjson' }

/** `GET /v1/repository/changes`. */
export async function sendChanges(git: Git, { url, res }: Call): Promise<undefined> {
  const commits = commitsOf(url, 'from', 'to')
  let lines: Change[] = []
  const flush = async () => {
    const sizes = await sizesOf(
      git,
      lines.flatMap((line) => ('blob' in line ? [line.blob] : [])),
    )
    const complete = lines.map((line): TreeChange => {
      if ('removed' in line) return line
      return { ...line, size: sizes.get(line.blob) as number }
    })
    lines = []
    if (!res.headersSent) res.writeHead(200, NDJSON)
    await write(res, Buffer.from(complete.map((line) => `${JSON.stringify(line)}\n`).join('')))
  }
  await onCommits(git, commits, async ({ from, to }) => {
    for await (const change of changesBetween(git, from, to)) {
      if (lines.push(change) >= AT_ONCE) await flush()
    }
  })
  await flush()
  res.end()
}

type Change = Extract<TreeChange, { removed: true }> | Omit<Extract<TreeChange, { blob: string }>, 'size'>

async function* changesBetween(git: Git, from: string, to: string): AsyncGenerator<Change> {
  for await (const change of rawDiff(git, ['diff-tree', '-r'], [from, to], {
    env: git.withoutIndex,
  })) {
    if (!isUtf8(change.path)) continue
    const { mode, blob } = change
    const path = change.path.toString('utf8')
    const wasFile = isFileMode(change.modeBefore)
    if (isFileMode(mode)) yield { path, mode, blob, isNew: !wasFile }
    else if (wasFile) yield { path, removed: true }
  }
}

type FileMode = '100644' | '100755' | '120000'
/** True for a file or a link; false for a submodule, and for `000000`, which stands for nothing. */
function isFileMode(mode: string): mode is FileMode {
  return mode === '100644' || mode === '100755' || mode === '120000'
}

/** @throws AgentdError not_found if one does not exist, or is not a blob. */
async function sizesOf(git: Git, blobs: string[]): Promise<Map<string, number>> {
  const sizes = new Map<string, number>()
  if (blobs.length === 0) return sizes
  const input = `${[...new Set(blobs)].join('\n')}\n`
  for await (const record of git.records(['cat-file', '--batch-check'], { input, end: '\n' })) {
    const [id, type, size] = record.toString('latin1').split(' ')
    if (type !== 'blob') throw new AgentdError('not_found', `blobs: ${id} is not there`)
    sizes.set(id as string, Number(size))
  }
  return sizes
}

/** `POST /v1/repository/blobs`. */
export async function sendBlobs(git: Git, call: Call): Promise<undefined> {
  const { blobs } = (await call.json<BlobsRequest>()) ?? {}
  if (!Array.isArray(blobs) || blobs.length > MAX_BLOBS || !blobs.every(isId))
    throw new AgentdError('bad_request', `blobs: must be a list of at most ${MAX_BLOBS} ids`)
  await sizesOf(git, blobs)
  const { res } = call
  res.writeHead(200, { 'content-type': 'application/octet-stream' })
  if (blobs.length > 0) {
    // Git's own output is the response: its chunks are forwarded unchanged.
    const args = ['cat-file', '--batch=%(objectname) %(objectsize)']
    const options = { input: `${blobs.join('\n')}\n`, timeoutMs: BLOBS_MS }
    for await (const chunk of git.chunks(args, options)) await write(res, chunk)
  }
  res.end()
}

/** `GET /v1/repository/diff`. */
export async function sendDiff(git: Git, { url, res }: Call): Promise<undefined> {
  const max = maxOf(url)
  const diff = ['diff', '--no-color', '--no-ext-diff', '--no-textconv']
  await onCommits(git, commitsOf(url, 'from', 'to'), ({ from, to }) =>
    sendLines(res, max, git.chunks([...diff, from, to], { env: git.withoutIndex })),
  )
}

/** `GET /v1/repository/files`. */
export async function sendFiles(git: Git, { url, res }: Call): Promise<undefined> {
  const max = maxOf(url)
  await onCommits(git, commitsOf(url, 'commit'), ({ commit }) => sendLines(res, max, fileLines(git, commit)))
}

async function* fileLines(git: Git, commit: string): AsyncGenerator<Buffer> {
  for await (const record of git.records(['ls-tree', '-r', '-z', '--long', commit])) {
    const [, size, path] = /^\d+ blob \S+ +(\d+)\t([\s\S]*)$/.exec(record.toString('utf8')) ?? []
    // Line breaks in names are replaced, so that each line is one file.
    if (path !== undefined) yield Buffer.from(`${size} ${path.replace(/[\r\n]/g, '?')}\n`)
  }
}

/** `GET /v1/repository/file`. */
export async function sendFile(git: Git, { url, res }: Call): Promise<undefined> {
  const { commit } = commitsOf(url, 'commit')
  const path = url.searchParams.get('path') ?? ''
  if (
    path === '' ||
    path.includes('\0') ||
    path.split('/').some((name) => name === '' || /^\.\.?$/.test(name))
  )
    throw new AgentdError('bad_request', 'path: must be a path below the root')
  if (!(await exists(git, commit, 'commit'))) throw noCommit('commit')
  const found = await git.attempt(['rev-parse', '--quiet', '--verify', `${commit}:${path}`])
  const blob = found.stdout.toString('utf8').trim()
  const size = found.code === 0 ? (await sizesOf(git, [blob])).get(blob) : undefined
  if (size === undefined) throw new AgentdError('not_found', 'path: there is nothing there')
  const max = maxOf(url)
  if (size > max) throw new AgentdError('too_large', `more than ${max} bytes`)
  res.writeHead(200, { 'content-type': 'application/octet-stream', 'content-length': size })
  for await (const { content } of readObjects(git, [blob])) {
    for await (const chunk of content) await write(res, chunk)
  }
  res.end()
}

/** Sends whole lines, up to `most` bytes; the rest is not read. */
async function sendLines(res: ServerResponse, most: number, text: AsyncIterable<Buffer>): Promise<undefined> {
  const max = Math.min(most, TEXT_BYTES)
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of text) {
    chunks.push(chunk)
    size += chunk.length
    if (size > max) break
  }
  const all = Buffer.concat(chunks)
  const truncated = size > max
  const body = truncated ? all.subarray(0, all.lastIndexOf('\n', max - 1) + 1) : all
  res.writeHead(200, {
    'content-type': 'text/plain; charset=utf-8',
    'content-length': body.length,
    ...(truncated && { truncated: 'true' }),
  })
  res.end(body)
}

/** Resolves when more may be written. @throws if the client has disconnected. */
async function write(res: ServerResponse, chunk: Buffer): Promise<void> {
  if (res.destroyed) throw new Error('the client has gone')
  if (res.write(chunk)) return
  const drained = new AbortController()
  const gone = once(res, 'close', drained).then(() => {
    throw new Error('the client has gone')
  })
  try {
    await Promise.race([once(res, 'drain', drained), gone])
  } finally {
    gone.catch(() => {})
    drained.abort()
  }
}

/** The id of a commit that must exist. */
export function commitId(value: unknown, name: string): string {
  if (!isId(value)) throw new AgentdError('bad_request', `${name}: must be 40 hex digits`)
  return value
}

/** The ids of commits in a query; the empty tree if `from` is not given. */
function commitsOf<N extends string>({ searchParams }: URL, ...names: N[]): Record<N, string> {
  const idOf = (name: N) =>
    name === 'from' && !searchParams.has(name) ? EMPTY_TREE : commitId(searchParams.get(name), name)
  return Object.fromEntries(names.map((name) => [name, idOf(name)])) as Record<N, string>
}

/**
 * Runs git on commits. Checks whether they exist only after a failure, because each check costs a process.
 * @throws AgentdError not_found if one does not exist. @throws GitError
 */
async function onCommits<N extends string>(
  git: Git,
  commits: Record<N, string>,
  work: (commits: Record<N, string>) => Promise<void>,
): Promise<undefined> {
  const named = Object.entries(commits) as [N, string][]
  const peeled = named.map(([name, id]) => [name, id === EMPTY_TREE ? id : `${id}^{commit}`])
  try {
    await work(Object.fromEntries(peeled) as Record<N, string>)
  } catch (error) {
    if (!(error instanceof GitError)) throw error
    for (const [name, id] of named)
      if (id !== EMPTY_TREE && !(await exists(git, id, 'commit'))) throw noCommit(name)
    throw error
  }
}

const noCommit = (name: string) => new AgentdError('not_found', `${name}: no such commit`)

const maxOf = (url: URL): number => queryNumber(url, 'max', MAX_BYTES, MAX_BYTES)
