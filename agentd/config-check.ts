import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { mkdir, unlink, writeFile } from 'node:fs/promises'
import { AgentdError } from './errors.ts'
import { engineCommand } from './openclaw.ts'
import type { ConfigCheck } from './protocol.ts'
import type { Agent } from './server.ts'

type Json = Record<string, unknown>

/** The engine's command takes 2.6 s; several times that on a machine that is busy. */
const CHECK_MS = 60_000
const OUTPUT_BYTES = 1_048_576

/**
 * Has the engine's command check a configuration, with the agent's environment. It is the only way that stores nothing:
 * the gateway has no method for it, and its schema leaves out what plugins and references to secrets need.
 * @throws AgentdError engine when it gives no verdict
 */
export async function checkWithEngine(agent: Agent, text: string): Promise<ConfigCheck> {
  const { config, paths, gateway } = agent
  // Beside the real one: what it includes is relative to it.
  const candidate = `${paths.configFile}.${randomUUID()}.part`
  const { file, args } = engineCommand(config, ['config', 'validate', '--json'])
  await mkdir(paths.state, { recursive: true, mode: 0o700 })
  try {
    await writeFile(candidate, text, { flag: 'wx', mode: 0o600 })
    const env = { ...gateway.env, OPENCLAW_CONFIG_PATH: candidate }
    return checkOf(agent, await run(file, args, { cwd: paths.state, env }))
  } finally {
    await unlink(candidate).catch(() => {})
  }
}

/** The verdict out of what the engine says: the command, or the gateway's `config.get`. */
export function checkOf({ log }: Agent, { valid, issues, warnings }: Json): ConfigCheck {
  const said = (valid ? warnings : issues) ?? []
  const lines = Array.isArray(said) ? said.map(({ path, message }) => `${path || '<root>'}: ${message}`) : []
  return { valid: valid === true, output: log.redact(lines.join('\n')) }
}

/** Runs a command and reads its JSON, which comes with exit code 1 as well. */
function run(
  file: string,
  args: string[],
  options: { cwd: string; env: Record<string, string> },
): Promise<Json> {
  const bounds = { timeout: CHECK_MS, maxBuffer: OUTPUT_BYTES, killSignal: 'SIGKILL' } as const
  return new Promise((resolve, reject) => {
    execFile(file, args, { ...options, ...bounds }, (error, stdout, stderr) => {
      try {
        resolve(JSON.parse(stdout))
      } catch {
        const why = stderr.trim().split('\n').at(-1) || error?.message
        reject(
          new AgentdError('engine', `the engine did not check it: ${why}`.slice(0, 1000), { cause: error }),
        )
      }
    })
  })
}
