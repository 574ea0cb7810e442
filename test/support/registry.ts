/** A registry for a test: distribution on a folder, on a free port of loopback. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { freePort, run, until } from './processes.ts'

/** The binary that tests may use, or undefined: `scripts/ci/registry.sh` builds one. */
const binary = process.env.BERTH_TEST_REGISTRY || undefined
/** Why registry tests cannot run here; false if they can. */
export const withoutRegistry = !binary && 'needs BERTH_TEST_REGISTRY'

/** The login that a registry with {@link BASIC} accepts. */
export const LOGIN = 'tester:the password'
const HASHED = 'tester:$2b$05$abcdefghijklmnopqrstuuOxgzQAr/nZSrgy7Zk8mkm2vo6XX5EPu'

/** How it identifies its clients: by password, or by the tokens of another server; configuration of distribution. */
export type Authentication = 'none' | 'password' | Record<string, unknown>

/** Starts a registry. @returns its address, `127.0.0.1:port`. */
export async function startRegistry(
  t: TestContext,
  authentication: Authentication = 'none',
  address?: string,
): Promise<string> {
  if (!binary) throw new Error('BERTH_TEST_REGISTRY is not set: scripts/ci/registry.sh')
  const dir = await mkdtemp(join(tmpdir(), 'berth-registry-'))
  const addr = address ?? `127.0.0.1:${await freePort()}`
  await writeFile(join(dir, 'users'), `${HASHED}\n`)
  const auth =
    authentication === 'password'
      ? { htpasswd: { realm: 'tests', path: join(dir, 'users') } }
      : authentication !== 'none' && { token: authentication }
  const config = {
    version: 0.1,
    log: { level: 'error', accesslog: { disabled: true } },
    storage: { filesystem: { rootdirectory: join(dir, 'data') } },
    http: { addr },
    ...(auth && { auth }),
  }
  // JSON is YAML.
  await writeFile(join(dir, 'config.yml'), JSON.stringify(config))
  const server = run(binary, ['serve', join(dir, 'config.yml')], {
    env: { PATH: process.env.PATH, OTEL_TRACES_EXPORTER: 'none' },
  })
  t.after(async () => {
    await server.end('SIGKILL')
    await rm(dir, { recursive: true })
  })
  await until('the registry answers', async () => {
    if (server.process.exitCode !== null) throw new Error(server.output())
    return (await fetch(`http://${addr}/v2/`)).status < 500
  })
  return addr
}
