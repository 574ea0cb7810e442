/** git's smart HTTP (gitprotocol-http): git's own programs do the work, agentd forwards bytes. */
import type { IncomingMessage } from 'node:http'
import { Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGunzip } from 'node:zlib'
import { AgentdError } from '../agentd-errors.ts'
import type { Call, Route } from '../server.ts'
import type { Committer } from './commit.ts'
import { endOf, type GitProcess, killGit } from './git.ts'
import { type Pushes, syncMessage } from './push.ts'
import { openRepository, type Repository, requireSecrets } from './repository.ts'

type Program = 'upload-pack' | 'receive-pack'

/** A connection is cut if neither side has sent a byte for this long: git itself sends one every five seconds. */
const STALL_MS = 60_000
const MAX_MS = 3_600_000
/** Maximum bytes of the list of commits that a client wants and has, in lines of 50 bytes. */
const WANTS_BYTES = 67_108_864
/** Each costs one or two processes, and memory. */
const AT_ONCE = 8

export interface GitParts {
  repository: Repository
  committer: Committer
  pushes: Pushes
}

/** `/v1/git/*`. */
export function gitRoutes(parts: GitParts): Route[] {
  let running = 0
  const bounded = async (work: () => Promise<undefined>): Promise<undefined> => {
    if (running >= AT_ONCE) throw new AgentdError('busy', `${AT_ONCE} clients are already being served`)
    running++
    return await work().finally(() => running--)
  }
  const at = '/v1/git'
  const post = (program: Program): Route => ({
    method: 'POST',
    path: `${at}/git-${program}`,
    handle: (call) => bounded(() => serve(parts, program, call)),
  })
  return [
    { method: 'GET', path: `${at}/info/refs`, handle: (call) => bounded(() => advertise(parts, call)) },
    post('upload-pack'),
    post('receive-pack'),
  ]
}

/** Lists the refs; before a push, commits the agent's changes so that they are included. */
async function advertise({ repository, committer, pushes }: GitParts, call: Call): Promise<undefined> {
  const service = call.url.searchParams.get('service')
  const [, program] = /^git-(upload-pack|receive-pack)$/.exec(service ?? '') ?? []
  if (program === undefined)
    throw new AgentdError('bad_request', 'service: only the smart protocol is spoken')
  if (program === 'receive-pack') requireSecrets(repository)
  await repository.mutex.run(async () => {
    await pushes.finish()
    if (program === 'receive-pack') await committer.commit(syncMessage())
    else await openRepository(repository)
  })
  const env = protocolOf(call.req)
  const child = repository.git.spawn([program, '--stateless-rpc', '--advertise-refs', repository.root], {
    env,
  })
  child.stdin.end()
  const { res } = call
  head(res, `application/x-git-${program}-advertisement`)
  // git's own server omits the announcement for version 2, which identifies itself.
  if (program !== 'upload-pack' || !/(^|:)version=2(:|$)/.test(env.GIT_PROTOCOL ?? ''))
    res.write(`${packet(`# service=git-${program}\n`)}0000`)
  await passOn(child, endOf(child), call)
}

async function serve({ repository, pushes }: GitParts, program: Program, call: Call): Promise<undefined> {
  const { req, res } = call
  const isPush = program === 'receive-pack'
  const decoding = decoderOf(req)
  const child = repository.git.spawn([program, '--stateless-rpc', repository.root], {
    env: protocolOf(req),
    talk: isPush,
  })
  const ended = endOf(child)
  head(res, `application/x-git-${program}-result`)
  // git's own configuration bounds the size of a push.
  const transforms = [...decoding, ...(isPush ? [] : [atMost(WANTS_BYTES)])]
  // If git ends early, its output gives the reason, and the client reads that first.
  pipeline([req, ...transforms, child.stdin]).catch(() => child.stdin.destroy())
  await passOn(child, ended, call, isPush ? pushes.attend(child, ended) : undefined)
}

/**
 * Forwards git's output to the client, as fast as the client reads. Ends both if either disconnects or stalls.
 * @param until delays the end of the response until it has resolved.
 */
async function passOn(
  child: GitProcess,
  ended: ReturnType<typeof endOf>,
  { req, res, signal }: Call,
  until?: Promise<void>,
): Promise<undefined> {
  const kill = () => killGit(child)
  // Killing only git would leave its unread output with a client that does not read, and nothing would end.
  const cut = () => {
    kill()
    res.destroy()
  }
  const stalled = setTimeout(cut, STALL_MS)
  const most = setTimeout(cut, MAX_MS)
  const alive = () => stalled.refresh()
  child.stdout.on('data', alive)
  req.on('data', alive)
  signal.addEventListener('abort', kill, { once: true })
  if (signal.aborted) kill()
  try {
    await pipeline(child.stdout, res, { end: false }).catch(kill)
    const { code } = await ended
    // git's output is complete; the working tree may take its time to follow.
    clearTimeout(stalled)
    clearTimeout(most)
    await until
    // Cuts the response off, so that the client does not treat it as complete.
    if (code !== 0) res.destroy()
    else res.end()
  } finally {
    clearTimeout(stalled)
    clearTimeout(most)
    signal.removeEventListener('abort', kill)
    kill()
  }
}

function head(res: Call['res'], type: string): void {
  res.writeHead(200, { 'content-type': type, 'cache-control': 'no-cache, no-store, must-revalidate' })
}

/** The protocol version, which clients request in a header. */
function protocolOf({ headers }: IncomingMessage): Record<string, string> {
  const asked = headers['git-protocol']
  return typeof asked === 'string' && /^[\w=:.-]{1,200}$/.test(asked) ? { GIT_PROTOCOL: asked } : {}
}

/** Decompresses the body for git: clients compress long lists of commits. */
function decoderOf({ headers }: IncomingMessage): Transform[] {
  const encoding = headers['content-encoding'] ?? 'identity'
  if (encoding === 'identity') return []
  if (/^(x-)?gzip$/.test(encoding)) return [createGunzip()]
  throw new AgentdError('bad_request', `content-encoding: not ${encoding}`)
}

function atMost(bytes: number): Transform {
  let left = bytes
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      left -= chunk.length
      done(left < 0 ? new Error('the request is too long') : null, chunk)
    },
  })
}

function packet(text: string): string {
  return `${(text.length + 4).toString(16).padStart(4, '0')}${text}`
}
