/**
 * Replaces the environment of a gateway that runs. A process takes no variables from outside, so a spare gateway starts
 * with a module that waits for them on a channel, before anything of the engine is loaded.
 */
import { type ChildProcess, execFile } from 'node:child_process'
import { join } from 'node:path'
import type { Log } from './logs.ts'
import type { AgentdConfig, StartRequest } from './protocol.ts'

type Environment = Readonly<Record<string, string>>

/** In the environment of a spare until its module has run, so that no child or thread of it waits as well. */
const MARK = 'AGENTD_SPARE'
/** A gateway that has just started may stall for ten seconds on a busy machine; a restart takes longer. */
const ANSWER_MS = 15_000
const SEARCH_MS = 5000
/** Variables that Node or the C library may read at their start. */
const READ_BY_NODE = /^(NODE_|UV_|LC_|LANG|TZ$)/

/**
 * Values that the engine applies completely while it runs: its lists of models, plugins, tools and commands are the same
 * as after a start, and turns use the provider's dialect.
 */
const LIVE = /^(models\.providers\.|agents\.defaults\.model(\.|$))/
/** The engine's part that reads a changed config, and its words once it has applied it. */
const RELOADER = 'gateway/reload'
const APPLIED = /^config (hot reload|change) applied/

/** JavaScript, because Node's type stripper would stay in the gateway's memory. */
const MODULE = `
import { isMainThread } from 'node:worker_threads'
if (isMainThread && process.env.${MARK}) {
  delete process.env.${MARK}
  process.execArgv.splice(process.execArgv.indexOf('--import'), 2)
  const send = process.send.bind(process)
  const disconnect = process.disconnect.bind(process)
  // The engine must not see that it has a parent to talk to.
  process.send = process.disconnect = undefined
  process.once('message', ({ set, unset }) => {
    Object.assign(process.env, set)
    for (const name of unset) delete process.env[name]
    send('done', disconnect)
  })
  process.channel.unref()
}`

/** Node's options for a spare gateway, its variables, and a channel in its `stdio`. */
export const SPARE = {
  args: ['--import', `data:text/javascript,${encodeURIComponent(MODULE)}`],
  env: { [MARK]: '1' },
  stdio: ['ipc'],
} as const

/** True if a running spare can take the owner's settings: nothing in them needs another process. */
export function canTakeOver(
  run: { request: StartRequest; child: ChildProcess | undefined; isChangingHands: boolean },
  request: StartRequest,
): boolean {
  const { request: spare, child, isChangingHands } = run
  return (
    spare.spare === true &&
    !request.spare &&
    !isChangingHands &&
    child?.connected === true &&
    spare.gatewayToken === request.gatewayToken &&
    // Node reads the proxy's URL and its authority's certificate when it starts. Each certificate is signed again.
    spare.proxyCredential === request.proxyCredential &&
    (spare.caCertificate === undefined) === (request.caCertificate === undefined) &&
    request.plugins.length === 0
  )
}

/**
 * Makes sure that none of the owner's secrets has a name that the engine, or Node, may have looked for when it started.
 * @throws Error
 */
export async function requireUnread(
  { secretNames = [] }: StartRequest,
  { engineDir }: AgentdConfig,
): Promise<void> {
  if (secretNames.length === 0) return
  const code = join(engineDir, 'node_modules', 'openclaw')
  const names = secretNames.flatMap((name) => ['-e', name])
  const args = ['--recursive', '--quiet', '--word-regexp', '--fixed-strings', ...names]
  // Exit code 1: no file has any of them.
  const known = new Promise<boolean>((resolve) => {
    execFile('grep', [...args, '--', code], { timeout: SEARCH_MS }, (error) => resolve(error?.code !== 1))
  })
  if (secretNames.some((name) => READ_BY_NODE.test(name)) || (await known))
    throw new Error('the engine reads one of the secrets when it starts')
}

/**
 * Gives a spare gateway another environment, once: its channel closes. Threads and processes that it has started keep
 * the old one. @throws Error if it does not respond, or was not started as a spare.
 */
export async function replaceEnvironment(
  child: ChildProcess,
  from: Environment,
  to: Environment,
): Promise<void> {
  // The engine has changed others since its start, such as PATH.
  const set = Object.fromEntries(Object.entries(to).filter(([name, value]) => from[name] !== value))
  const unset = Object.keys(from).filter((name) => !(name in to))
  const done = Promise.withResolvers<void>()
  const refuse = () => done.reject(new Error('the spare gateway does not take its environment'))
  const timer = setTimeout(refuse, ANSWER_MS)
  child.once('message', () => done.resolve()).once('disconnect', refuse)
  try {
    child.send({ set, unset }, (error) => error && refuse())
    await done.promise
  } finally {
    clearTimeout(timer)
  }
}

/**
 * Changes the config of a gateway that runs, and waits until the gateway has applied it.
 * @param write returns the paths of changed values.
 * @throws Error if it needs another start for them, or does not apply them in time.
 */
export async function applyConfig(log: Log, write: () => Promise<string[]>): Promise<void> {
  const applied = Promise.withResolvers<void>()
  applied.promise.catch(() => {})
  const unsubscribe = log.subscribe(({ level, source, message }) => {
    if (source !== RELOADER) return
    if (APPLIED.test(message)) applied.resolve()
    else if (level !== 'INFO') applied.reject(new Error(message))
  })
  const timer = setTimeout(() => applied.reject(new Error('it does not apply its config')), ANSWER_MS)
  try {
    const changed = await write()
    const other = changed.find((path) => !LIVE.test(path))
    if (other !== undefined) throw new Error(`its config differs in ${other}`)
    if (changed.length > 0) await applied.promise
  } finally {
    clearTimeout(timer)
    unsubscribe()
  }
}
