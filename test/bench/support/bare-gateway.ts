/** The alternative to an agent: the engine's gateway in a container of the same image, with nothing of Berth. */
import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { promisify } from 'node:util'
import { freePort, until } from '../../support/processes.ts'

const execute = promisify(execFile)
const READY_MS = 120_000

export interface BareGateway {
  url: string
  token: string
  /** From `docker run` until it says that it is ready. */
  readyMs: number
  stop(): Promise<void>
}

/**
 * Runs it on the machine's own network, where the model is. The image and the limits are those of agents, and it
 * finds its configuration in its environment.
 * @param config openclaw.json, without `gateway`.
 */
export async function startBareGateway(image: string, config: Record<string, unknown>): Promise<BareGateway> {
  const port = await freePort()
  const token = randomUUID()
  const name = `berth-bench-${token.slice(0, 8)}`
  const gateway = {
    mode: 'local',
    port,
    bind: 'loopback',
    auth: { mode: 'token', token },
    controlUi: { enabled: false },
    http: { endpoints: { chatCompletions: { enabled: true } } },
  }
  const script =
    'mkdir -p ~/.openclaw && printf %s "$CONFIG" > ~/.openclaw/openclaw.json && ' +
    'exec node /opt/openclaw/node_modules/openclaw/openclaw.mjs gateway run'
  const began = performance.now()
  await execute('docker', [
    ...['run', '--detach', '--name', name, '--network', 'host', '--user', '1000:1000', '--read-only'],
    ...['--tmpfs', '/tmp', '--tmpfs', '/home/node:uid=1000,gid=1000', '--cap-drop', 'ALL'],
    ...['--memory', '2g', '--cpus', '2', '--pids-limit', '512', '--env', 'HOME=/home/node'],
    ...['--env', `CONFIG=${JSON.stringify({ ...config, gateway })}`],
    ...['--entrypoint', '/usr/bin/tini', image, '--', 'sh', '-c', script],
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
