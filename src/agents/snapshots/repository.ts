/** Accesses an agent's repository through its agentd. Its responses are untrusted: each is checked and bounded. */
import { createHash } from 'node:crypto'
import type { Readable } from 'node:stream'
import { z } from 'zod'
import type {
  CommitRequest,
  Imported,
  RepositoryStatus,
  TreeChange,
} from '../../../agentd/repository/protocol.ts'
import { storableText } from '../../lib/read.ts'
import { type AgentdClient, AgentdError, type AgentdRequest, type AgentdTarget } from '../agentd-client.ts'
import { storable } from '../agentd-status.ts'
import { jsonLines, readWithin } from '../agentd-stream.ts'

const STATUS_MS = 20_000
/** Committing hashes all changed files; the first commit hashes everything. */
const COMMIT_MS = 300_000
const TEXT_MS = 60_000
const CHECKOUT_MS = 300_000
/** Authors may write commit messages of any length; longer ones are refused. */
const COMMIT_BYTES = 2_097_152
/** A path has at most 4096 bytes, each of which may take six in JSON. */
const LINE_BYTES = 32_768
const MAX_PATH_BYTES = 4096

/** The agent that owns the repository, and how to reach it. */
export interface RepositoryAccess {
  agentd: AgentdClient
  target: AgentdTarget
  /** The epoch of the operation: agentd refuses epochs lower than the highest it has seen. */
  epoch: number
  signal: AbortSignal
}

const hash = z.string().regex(/^[0-9a-f]{40}$/)
const text = storable(2 * MAX_PATH_BYTES)
const count = z.number().int().nonnegative()
const repositoryStatus = z.object({ head: hash.nullable(), dirty: z.boolean(), pushed: hash.nullable() })
const imported = z.object({ commit: hash, tree: hash })

const path = z
  .string()
  .min(1)
  .refine(
    (value) => Buffer.byteLength(value) <= MAX_PATH_BYTES && storableText(value) === value,
    'unfit text',
  )
  .refine((value) => !value.split('/').some((name) => ['', '.', '..', '.git'].includes(name)), 'no such path')
const change = z.union([
  z.object({ path, removed: z.literal(true) }),
  z.object({
    path,
    mode: z.enum(['100644', '100755', '120000']),
    blob: hash,
    size: z.number().int().nonnegative(),
    isNew: z.boolean(),
  }),
])

/** The parts of a workspace that git's trees lack, as agentd reports them: see `Extras` there. */
const extras = z.object({
  folders: z.array(path),
  modes: z.array(z.object({ path, mode: z.number().int().min(0).max(0o777) })),
  refs: z.array(z.object({ ref: text, commit: hash })),
  more: count,
})
export type Extras = z.output<typeof extras>
const extrasResult = z.object({ lost: z.array(text) })

/** An agentd of the previous version returns no reasons and extras. */
const committed = z.object({
  commit: hash,
  tree: hash,
  isNew: z.boolean(),
  object: z.base64(),
  leftOut: z.array(text).max(20),
  reasons: z.array(text).max(20).default([]),
  more: count.default(0),
  ignored: z
    .array(z.object({ rule: text, path: text, count }))
    .max(50)
    .default([]),
  extras: extras.optional(),
})
/** A commit that agentd created or found; `object` is git's stored form, without its header. */
export interface CheckedCommit {
  commit: string
  tree: string
  object: Buffer
  /** Files that were left out, for people: `<path>: <reason>`. */
  leftOut: string[]
  /** Undefined if agentd is of the previous version. */
  extras: Extras | undefined
}

/** The current state of the repository. @throws AgentdError */
export async function readRepository(
  { agentd, target }: Pick<RepositoryAccess, 'agentd' | 'target'>,
  signal: AbortSignal,
): Promise<RepositoryStatus> {
  return agentd.json(target, { path: '/v1/repository', timeoutMs: STATUS_MS, signal }, repositoryStatus)
}

/** Commits all changes. @throws AgentdError, including for a commit that does not match its id. */
export async function commitAll(access: RepositoryAccess, request: CommitRequest): Promise<CheckedCommit> {
  const limits = { timeoutMs: COMMIT_MS, maxBytes: COMMIT_BYTES }
  const call = { method: 'POST', path: '/v1/repository/commit', json: request, ...limits }
  const { commit, tree, object: base64, ...rest } = await ask(access, call, committed)
  const object = Buffer.from(base64, 'base64')
  if (commitHash(object) !== commit || treeOf(object) !== tree)
    throw new AgentdError('bad_answer', 'agentd returned a commit that does not match its id')
  return { commit, tree, object, leftOut: leftOutLines(rest), extras: rest.extras }
}

/** Has agentd commit all changes, and does not wait for that; a failure is in the agent's log. @throws AgentdError */
export async function commitLater(access: RepositoryAccess, message: string): Promise<void> {
  const json = { message, later: true } satisfies CommitRequest
  const { agentd, target, epoch, signal } = access
  await agentd.json(target, { method: 'POST', path: '/v1/repository/commit', json, epoch, signal })
}

const UNKNOWN_REASON = 'it holds a secret or cannot be kept'

/** A line for each path, and one for each rule of `.gitignore` that excludes paths. */
function leftOutLines({
  leftOut,
  reasons,
  more,
  ignored,
}: Pick<z.output<typeof committed>, 'leftOut' | 'reasons' | 'more' | 'ignored'>): string[] {
  return [
    ...leftOut.map((path, i) => `${path}: ${reasons[i] ?? UNKNOWN_REASON}`),
    ...(more > 0 ? [`… and ${more} more`] : []),
    ...ignored.map(
      ({ rule, path, count }) =>
        `${path}${count > 1 ? ` and ${count - 1} more` : ''}: excluded by the rule ${rule}`,
    ),
  ]
}

/** The id of a commit. */
export const commitHash = (object: Buffer): string =>
  createHash('sha1').update(`commit ${object.length}\0`).update(object).digest('hex')

/** The tree of a commit; undefined if it is not a commit. */
export const treeOf = (object: Buffer): string | undefined =>
  /^tree ([0-9a-f]{40})\n/.exec(object.toString('latin1', 0, 46))?.[1]

/**
 * The changes from one commit to another; everything without `from`.
 * @throws AgentdError `not_found` if one of the commits does not exist.
 */
export async function* readChanges(
  { agentd, target, signal }: RepositoryAccess,
  { from, to }: { from: string | undefined; to: string },
): AsyncGenerator<TreeChange> {
  const query = new URLSearchParams({ ...(from && { from }), to })
  const response = await agentd.stream(target, {
    path: `/v1/repository/changes?${query}`,
    timeoutMs: TEXT_MS,
    signal,
  })
  yield* jsonLines(readWithin(response), LINE_BYTES, change)
}

/** For reading, which changes nothing and needs no epoch. */
type Reading = Omit<RepositoryAccess, 'epoch'>

/** A text of the repository, cut after `max` bytes. */
interface Cut {
  text: string
  truncated: boolean
}

/** The unified diff of two commits, or of one against nothing. @throws AgentdError */
export function readDiff(
  access: Reading,
  { from, to, max }: { from: string | undefined; to: string; max: number },
): Promise<Cut> {
  const query = new URLSearchParams({ ...(from && { from }), to, max: `${max}` })
  return readText(access, `/v1/repository/diff?${query}`, max)
}

/** The files of a commit, one line `<size> <path>` each. @throws AgentdError */
export function readFiles(access: Reading, { commit, max }: { commit: string; max: number }): Promise<Cut> {
  return readText(access, `/v1/repository/files?${new URLSearchParams({ commit, max: `${max}` })}`, max)
}

async function readText({ agentd, target, signal }: Reading, path: string, max: number): Promise<Cut> {
  const { body, headers } = await agentd.bytes(target, { path, timeoutMs: TEXT_MS, maxBytes: max, signal })
  return { text: storableText(body.toString('utf8')), truncated: headers.truncated === 'true' }
}

/** Resets the working tree to a commit. @throws AgentdError `not_found` if the commit does not exist. */
export async function resetTo(access: RepositoryAccess, commit: string): Promise<void> {
  await ask(access, {
    method: 'POST',
    path: '/v1/repository/reset',
    json: { commit },
    timeoutMs: CHECKOUT_MS,
  })
}

/** Parses extras stored in the database. */
export const readExtras = (stored: unknown): Extras | null => extras.safeParse(stored).data ?? null

/**
 * Restores the parts of a workspace that git's trees lack. @returns the parts that could not be restored, for people.
 * @throws AgentdError
 */
export async function restoreExtras(access: RepositoryAccess, wanted: Extras): Promise<string[]> {
  const request = { method: 'PUT', path: '/v1/repository/extras', json: wanted, timeoutMs: CHECKOUT_MS }
  return (await ask(access, request, extrasResult)).lost
}

/** Creates the objects of one commit from a git-fast-import stream. @throws AgentdError */
export async function importStream(
  access: RepositoryAccess,
  stream: Readable,
  { bytes, timeoutMs }: { bytes: number; timeoutMs: number },
): Promise<Imported> {
  const path = `/v1/repository/import?bytes=${bytes}`
  return ask(access, { method: 'PUT', path, body: stream, timeoutMs }, imported)
}

/** Creates a commit whose tree exists. @throws AgentdError */
export async function adoptCommit(access: RepositoryAccess, object: Buffer): Promise<void> {
  await ask(access, {
    method: 'POST',
    path: '/v1/repository/adopt',
    json: { object: object.toString('base64') },
  })
}

/** Sends a request with the epoch. */
function ask<T>(
  { agentd, target, epoch, signal }: RepositoryAccess,
  request: AgentdRequest,
  shape?: z.ZodType<T>,
): Promise<T> {
  return agentd.json(target, { ...request, epoch, signal }, shape)
}
