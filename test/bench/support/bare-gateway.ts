/** The alternative to an agent: the engine's gateway in a container of the same image, without Berth. */
import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { promisify } from 'node:util'
import { MODEL, MODEL_KEY } from '../../support/model.ts'
import { freePort, until } from '../../support/processes.ts'

const execute = promisify(execFile)
const READY_MS = 120_000

export interface BareGateway {
  url: string
  token: string
  /** Time from `docker run` until it reports that it is ready. */
  readyMs: number
  stop(): Promise<void>
}

/** A shell command that runs the gateway of an engine's image with the openclaw.json in the variable CONFIG. */
export const START_GATEWAY =
  'mkdir -p ~/.openclaw && printf %s "$CONFIG" > ~/.openclaw/openclaw.json && ' +
  'exec node /opt/openclaw/node_modules/openclaw/openclaw.mjs gateway run'

/** The part `gateway` of openclaw.json. */
export const gatewayConfig = (port: number, bind: 'loopback' | 'lan', token: string) => ({
  mode: 'local',
  port,
  bind,
  auth: { mode: 'token', token },
  controlUi: { enabled: false },
  http: { endpoints: { chatCompletions: { enabled: true } } },
})

/** The same model, and otherwise as little as agents have. */
export function bareConfig(baseUrl: string): Record<string, unknown> {
  const limits = { contextWindow: 128_000, maxTokens: 8192 }
  const cost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }
  const about = { id: MODEL, name: MODEL, reasoning: false, input: ['text'], cost, ...limits }
  const provider = { baseUrl, apiKey: MODEL_KEY, api: 'openai-completions', models: [about] }
  return {
    update: { checkOnStart: false },
    telemetry: { enabled: false },
    discovery: { mdns: { mode: 'off' } },
    browser: { enabled: false },
    models: { mode: 'replace', catalogRefresh: { enabled: false }, providers: { bench: provider } },
    agents: {
      defaults: { model: { primary: `bench/${MODEL}` }, skipBootstrap: true, heartbeat: { every: '0m' } },
    },
    plugins: { allow: ['admin-http-rpc'], slots: { memory: 'none' } },
  }
}

/**
 * Runs it on the machine's own network, where the model is. It has the image and the limits of agents, and gets its
 * configuration from its environment.
 * @param config openclaw.json, without `gateway`.
 */
export async function startBareGateway(image: string, config: Record<string, unknown>): Promise<BareGateway> {
  const port = await freePort()
  const token = randomUUID()
  const name = `berth-bench-${token.slice(0, 8)}`
  const gateway = gatewayConfig(port, 'loopback', token)
  const began = performance.now()
  await execute('docker', [
    ...['run', '--detach', '--name', name, '--network', 'host', '--user', '1000:1000', '--read-only'],
    ...['--tmpfs', '/tmp', '--tmpfs', '/home/node:uid=1000,gid=1000', '--cap-drop', 'ALL'],
    ...['--memory', '2g', '--cpus', '2', '--pids-limit', '512', '--env', 'HOME=/home/node'],
    ...['--env', `CONFIG=${JSON.stringify({ ...config, gateway })}`],
    ...['--entrypoint', '/usr/bin/tini', image, '--', 'sh', '-c', START_GATEWAY],
  ])
  const stop = async () => {
    await execute('docker', ['rm', '--force', '--volumes', name])
  }
  const url = `http://127.0.0.1:${port}`
  try {
    await until('the bare gateway is ready', async () => (await fetch(`${url}/readyz`)).ok, READY_MS)
  } catch (error) {
    const { stdout, stderr } = await execute('docker', ['logs', '--tail', '20', name])
    await stop()
    throw new Error(`${stdout}${stderr}`, { cause: error })
  }
  return { url, token, readyMs: performance.now() - began, stop }
}
