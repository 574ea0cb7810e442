import { execFile } from 'node:child_process'
import { createHash, randomUUID } from 'node:crypto'
import { unlink, writeFile } from 'node:fs/promises'
import { isDeepStrictEqual } from 'node:util'
import { AgentdError } from './agentd-errors.ts'
import { redact, redactText, restore } from './config-redaction.ts'
import { makeFolders } from './folders.ts'
import { isObject, type Json } from './json.ts'
import { memoryKills, outOfMemory } from './memory.ts'
import { engineCommand } from './openclaw.ts'
import {
  ConfigError,
  onThisMachine,
  override,
  parseConfig,
  readConfig,
  replaceConfig,
  without,
  withoutGateway,
} from './openclaw-config.ts'
import { apiPath, type Paths } from './paths.ts'
import type { ConfigCheck, ConfigText, ConfigWritten } from './protocol.ts'
import { Mutex } from './repository/repository.ts'
import type { Agent, Service } from './server.ts'

const RPC_MS = 15_000
/** Each may take 2.6 s, and they run one after another. */
const WAITING = 8

/**
 * `GET`, `PUT /v1/config` and `POST /v1/config/validate`: openclaw.json without its secrets. `GET /v1/config/owned`:
 * the operator's keys; `GET /v1/config/own`: the rest, with its secrets.
 */
export function configService(agent: Agent): Service {
  const file = new ConfigFile(agent)
  const inLine = line()
  return {
    routes: [
      { method: 'GET', path: '/v1/config', handle: async () => ({ body: await file.read() }) },
      { method: 'GET', path: '/v1/config/own', handle: async () => ({ body: { config: await file.own() } }) },
      {
        method: 'GET',
        path: '/v1/config/owned',
        handle: async () => ({ body: { keys: keysOf(agent.gateway.ownedConfig ?? {}) } }),
      },
      {
        method: 'PUT',
        path: '/v1/config',
        async handle(call) {
          const body = await call.json()
          const text = fieldOf(body, 'text')
          const version = fieldOf(body, 'version')
          if (text === undefined) throw new AgentdError('bad_request', 'text: must be a text')
          return { body: await inLine(() => file.write(text, version)) }
        },
      },
      {
        method: 'POST',
        path: '/v1/config/validate',
        async handle(call) {
          const text = fieldOf(await call.json(), 'text')
          return { body: await inLine(() => (text === undefined ? file.checkStored() : file.check(text))) }
        },
      },
    ],
  }
}

class ConfigFile {
  readonly #agent: Agent

  constructor(agent: Agent) {
    this.#agent = agent
  }

  /** The text for the API: without secrets, and with the API's paths. The version belongs to the file. */
  async read(): Promise<ConfigText> {
    const text = (await this.#stored()) ?? '{}'
    return { text: this.#shown(text), version: versionOf(text) }
  }

  /** The owner's part, with its secrets and the API's paths, for the worker: another agent may begin with it. */
  async own(): Promise<Json> {
    const stored = this.#parse((await this.#stored()) ?? '{}')
    const own = without(withoutGateway(stored), this.#agent.gateway.ownedConfig ?? {})
    return onApi(this.#agent.paths, own) as Json
  }

  #shown(text: string): string {
    const { paths, log } = this.#agent
    const isSecret = (value: string) => log.redact(value) !== value
    try {
      const shown = redact(this.#parse(text), isSecret)
      return `${JSON.stringify(onApi(paths, shown), null, 2)}\n`
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error
      // Shows a config that does not parse verbatim: its owner has to see it to fix it.
      return redactText(log.redact(text))
    }
  }

  /**
   * Replaces the file if the engine accepts the new text.
   * @param version of the file to replace; undefined for any.
   * @throws AgentdError bad_request if the text fails before the engine's check, conflict for another version
   */
  async write(text: string, version: string | undefined): Promise<ConfigWritten> {
    const candidate = `${JSON.stringify(await this.#candidate(text), null, 2)}\n`
    await this.#requireVersion(version)
    if (await this.#hand(candidate))
      return { valid: true, output: '', version: versionOf((await this.#stored()) ?? '{}') }
    const check = await checkWithEngine(this.#agent, candidate)
    if (!check.valid) return check
    // The engine's check takes seconds, during which the agent may write, too.
    await this.#requireVersion(version)
    await replaceConfig(this.#agent.paths.configFile, candidate)
    return { ...check, version: versionOf(candidate) }
  }

  async #requireVersion(version: string | undefined): Promise<void> {
    if (version === undefined || version === versionOf((await this.#stored()) ?? '{}')) return
    throw new AgentdError('conflict', 'the config was changed in the meantime')
  }

  async check(text: string): Promise<ConfigCheck> {
    try {
      return await checkWithEngine(this.#agent, JSON.stringify(await this.#candidate(text)))
    } catch (error) {
      if (error instanceof AgentdError && error.code === 'bad_request')
        return { valid: false, output: error.message }
      throw error
    }
  }

  /** Checks the stored config; a running gateway responds in 3 ms. */
  async checkStored(): Promise<ConfigCheck> {
    if (this.#agent.gateway.state === 'ready') {
      const { payload } = await this.#call('config.get', {})
      if (isObject(payload) && typeof payload.valid === 'boolean') return checkOf(this.#agent, payload)
    }
    return checkWithEngine(this.#agent, (await this.#stored()) ?? '{}')
  }

  /** The config to be stored: with the redacted secrets, and the keys that the worker owns. */
  async #candidate(text: string): Promise<Json> {
    const { paths, gateway } = this.#agent
    const written = parseObject(text)
    // A stored config that cannot be read contains nothing to keep, and may be replaced.
    const stored = await this.#stored()
      .then((found) => this.#parse(found ?? '{}'))
      .catch((): Json => ({}))
    const owned = gateway.ownedConfig ?? {}
    const restored = onThisMachine(paths, restore(written, override(stored, owned))) as Json
    const taken = conflict(restored, owned)
    if (taken) throw new AgentdError('bad_request', `${taken}: is set by the operator and cannot be changed`)
    return override(restored, owned)
  }

  /**
   * Lets the running gateway check, store and apply it at once. Anything but success falls back to the slower way,
   * which ends the same whatever the gateway did: the gateway also refuses files that have become much shorter.
   */
  async #hand(candidate: string): Promise<boolean> {
    if (this.#agent.gateway.state !== 'ready') return false
    const { payload } = await this.#call('config.get', {})
    if (!isObject(payload) || typeof payload.hash !== 'string') return false
    const answer = await this.#call('config.set', { raw: candidate, baseHash: payload.hash })
    return answer.ok
  }

  async #call(method: string, params: Json): Promise<{ ok: boolean; payload?: unknown }> {
    try {
      return await this.#agent.engine.call(method, params, RPC_MS)
    } catch {
      return { ok: false }
    }
  }

  async #stored(): Promise<string | undefined> {
    try {
      return await readConfig(this.#agent.paths.configFile)
    } catch (error) {
      if (error instanceof ConfigError) throw new AgentdError('engine', error.message, { cause: error })
      throw error
    }
  }

  #parse(text: string): Json {
    return parseConfig(text, this.#agent.config.engineDir)
  }
}

/** @throws AgentdError bad_request */
function parseObject(text: string): Json {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw new AgentdError('bad_request', `not valid JSON: ${(error as Error).message}`)
  }
  if (!isObject(value)) throw new AgentdError('bad_request', 'must be a JSON object')
  return value
}

/** The first key of `owned` that `written` sets to another value; a missing key is put back. */
function conflict(written: Json, owned: Json, path: string[] = []): string | undefined {
  for (const [key, value] of Object.entries(owned)) {
    if (!Object.hasOwn(written, key)) continue
    const there = written[key]
    const here = [...path, key]
    if (isObject(value) && isObject(there)) {
      const below = conflict(there, value, here)
      if (below) return below
    } else if (!isDeepStrictEqual(there, value)) return here.join('.')
  }
}

/** The path of each value, in the same form as in {@link conflict}. */
function keysOf(owned: Json, path: string[] = []): string[] {
  return Object.entries(owned).flatMap(([key, value]) => {
    const here = [...path, key]
    return isObject(value) ? keysOf(value, here) : [here.join('.')]
  })
}

/** The opposite of {@link onThisMachine}. */
function onApi(paths: Paths, value: unknown): unknown {
  if (typeof value === 'string') return value.startsWith('/') ? apiPath(paths, value) : value
  if (Array.isArray(value)) return value.map((item) => onApi(paths, item))
  if (!isObject(value)) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, onApi(paths, item)]))
}

/** Runs tasks one after another. @throws AgentdError busy */
function line(): <T>(task: () => Promise<T>) => Promise<T> {
  const turn = new Mutex()
  let waiting = 0
  return async (task) => {
    if (waiting >= WAITING) throw new AgentdError('busy', `${WAITING} are already waiting`)
    waiting++
    return turn.run(task).finally(() => waiting--)
  }
}

/** Changes whenever the file's bytes change. */
const versionOf = (text: string): string => `"${createHash('sha256').update(text).digest('base64url')}"`

function fieldOf(body: unknown, name: 'text' | 'version'): string | undefined {
  const value = isObject(body) ? body[name] : undefined
  if (value !== undefined && typeof value !== 'string')
    throw new AgentdError('bad_request', `${name}: must be a text`)
  return value
}

/** The engine's command takes 2.6 s; several times that on a busy machine. */
const CHECK_MS = 60_000
const OUTPUT_BYTES = 1_048_576

/**
 * Checks a configuration with the engine's command, in the agent's environment. Only this way stores nothing: the
 * gateway has no method for it, and its schema lacks what plugins and references to secrets need.
 * @throws AgentdError engine if it gives no verdict
 */
async function checkWithEngine(agent: Agent, text: string): Promise<ConfigCheck> {
  const { config, paths, gateway } = agent
  // The file is next to the real one, because the paths of its includes are relative.
  const candidate = `${paths.configFile}.${randomUUID()}.part`
  const { file, args } = engineCommand(config, ['config', 'validate', '--json'])
  await makeFolders(paths.state)
  try {
    await writeFile(candidate, text, { flag: 'wx', mode: 0o600 })
    const env = { ...gateway.env, OPENCLAW_CONFIG_PATH: candidate }
    return checkOf(agent, await run(file, args, { cwd: paths.state, env }))
  } finally {
    await unlink(candidate).catch(() => {})
  }
}

/** The verdict in the engine's output: of the command, or of the gateway's `config.get`. */
function checkOf({ log }: Agent, { valid, issues, warnings }: Json): ConfigCheck {
  const said = (valid ? warnings : issues) ?? []
  const lines = Array.isArray(said) ? said.map(({ path, message }) => `${path || '<root>'}: ${message}`) : []
  return { valid: valid === true, output: log.redact(lines.join('\n')) }
}

/** Runs a command and parses its JSON, which also comes with exit code 1. */
function run(
  file: string,
  args: string[],
  options: { cwd: string; env: Record<string, string> },
): Promise<Json> {
  const bounds = { timeout: CHECK_MS, maxBuffer: OUTPUT_BYTES, killSignal: 'SIGKILL' } as const
  const kills = memoryKills()
  return new Promise((resolve, reject) => {
    execFile(file, args, { ...options, ...bounds }, (error, stdout, stderr) => {
      try {
        resolve(JSON.parse(stdout))
      } catch {
        const why = outOfMemory('the check', kills) ?? (stderr.trim().split('\n').at(-1) || error?.message)
        reject(
          new AgentdError('engine', `the engine did not check it: ${why}`.slice(0, 1000), { cause: error }),
        )
      }
    })
  })
}
