/** A test's own web process next to those of a Berth, with the same database and data. */
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { postgresUrl } from '../../src/standalone/postgres.ts'
import { freeMetricsPorts, freePort, type Running, run, until } from '../support/processes.ts'

const START_MS = 180_000
const MAIN = fileURLToPath(new URL('../../src/main.ts', import.meta.url))

export interface WebProcess {
  url: string
  running: Running
}

/** Settings with which it reaches the agents of `npm start`. */
export const proxyOf = ({ BERTH_DATA_DIR: dir, BERTH_AGENT_PROXY_SOCKET: socket }: NodeJS.ProcessEnv) => ({
  BERTH_AGENT_PROXY_SOCKET: socket ?? join(dir ?? '', 'agent-proxy.sock'),
})

/** Starts it, and waits until it responds. The caller must end it. */
export async function startWebProcess(
  env: NodeJS.ProcessEnv,
  settings: NodeJS.ProcessEnv = {},
): Promise<WebProcess> {
  const port = await freePort()
  const running = run(process.execPath, [MAIN, 'web'], {
    env: {
      ...env,
      DATABASE_URL: env.DATABASE_URL ?? (await postgresUrl(env.BERTH_DATA_DIR ?? '')) ?? '',
      PORT: `${port}`,
      BERTH_METRICS_PORT: `${await freeMetricsPorts()}`,
      BERTH_DATABASE_POOL: '5',
      ...settings,
    },
  })
  const url = `http://127.0.0.1:${port}`
  const answers = async () => (await fetch(`${url}/healthz`)).ok
  await until('the web process responds', answers, START_MS).catch((error) => {
    throw new Error(`${error.message}\n${running.output()}`, { cause: error })
  })
  return { url, running }
}
