/** A real Caddy with the shipped Caddyfile, its own CA, and free ports on loopback. */
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePort, type Running, run, until } from '../support/processes.ts'

const CADDYFILE = fileURLToPath(new URL('../../deploy/caddy/Caddyfile', import.meta.url))

export interface Caddy {
  /** The certificate of its CA, in PEM. */
  readonly ca: string
  /** Names with a certificate on its disk. */
  names(): Promise<string[]>
  /** The most memory that Caddy has used so far, in bytes. */
  peakBytes(): Promise<number>
  /** Stops it, and starts it again with the same data. */
  restart(): Promise<void>
  stop(): Promise<void>
}

/** Its ports, and the address of `web`. */
export interface CaddyOptions {
  ports: { http: number; https: number }
  publicUrl: string
  /** `host:port` of `web`. */
  upstream: string
  askUrl: string
  /** Additional environment variables. */
  env?: Record<string, string>
}

export async function startCaddy({
  ports,
  publicUrl,
  upstream,
  askUrl,
  ...more
}: CaddyOptions): Promise<Caddy> {
  const binary = process.env.BERTH_TEST_CADDY
  if (!binary) throw new Error('BERTH_TEST_CADDY is not set: scripts/ci/caddy.sh prints it')
  const dir = await mkdtemp(join(tmpdir(), 'berth-caddy-'))
  const healthPort = await freePort()
  const env = {
    PATH: process.env.PATH,
    HOME: dir,
    XDG_DATA_HOME: dir,
    XDG_CONFIG_HOME: dir,
    PUBLIC_URL: publicUrl,
    CADDY_UPSTREAM: upstream,
    CADDY_ASK_URL: askUrl,
    CADDY_HEALTH_PORT: String(healthPort),
    CADDY_GLOBAL_OPTIONS: [
      `http_port ${ports.http}`,
      `https_port ${ports.https}`,
      'default_bind 127.0.0.1',
      'local_certs',
      'skip_install_trust',
    ].join('\n'),
    ...more.env,
  }
  const data = join(dir, 'caddy')
  const certificates = join(data, 'certificates/local')
  let running: Running
  const start = async () => {
    running = run(binary, ['run', '--config', CADDYFILE], { env })
    await until('Caddy is up', async () => {
      if (running.process.exitCode !== null) throw new Error(running.output())
      const { status } = await fetch(`http://127.0.0.1:${healthPort}`)
      return status === 204 && (await readdir(certificates)).length > 0
    }).catch((error) => {
      throw new Error(`${error.message}\n${running.output()}`, { cause: error })
    })
  }
  await start()
  return {
    ca: await readFile(join(data, 'pki/authorities/local/root.crt'), 'utf8'),
    names: () => readdir(certificates),
    async peakBytes() {
      const status = await readFile(`/proc/${running.process.pid}/status`, 'utf8')
      return Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024
    },
    async restart() {
      await running.end()
      await start()
    },
    async stop() {
      await running.end()
      await rm(dir, { recursive: true, force: true })
    },
  }
}
