/** A Redis or Valkey with a replica and three Sentinels, which promote the replica within some seconds. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { freePort, type Running, run, until } from './processes.ts'
import { type Server, startRedis } from './servers.ts'

const SENTINELS = 3
/** Its name in Sentinel's settings. */
const NAME = 'main'
const PASSWORD = 'of-the-servers'
const SENTINEL_PASSWORD = 'of-the-sentinels'

export interface Sentinels {
  /** As in REDIS_URL, with both passwords. */
  url: string
  primary: Server
  replica: Server
  /** The port of the server that most Sentinels consider the primary. */
  portOfPrimary(): Promise<number>
  stop(): Promise<void>
}

/** @param program of the servers and of the Sentinels. */
export async function startSentinels(program = 'redis-server'): Promise<Sentinels> {
  const dir = await mkdtemp(join(tmpdir(), 'berth-sentinel-'))
  const login = { requirepass: PASSWORD, masterauth: PASSWORD }
  const primary = await startRedis(dir, login, program)
  const { port } = new URL(primary.url)
  const replica = await startRedis(dir, { ...login, replicaof: `127.0.0.1 ${port}` }, program)
  const ports: number[] = []
  const sentinels: Running[] = []
  for (let i = 0; i < SENTINELS; i++) {
    const own = await freePort()
    const path = join(dir, `sentinel-${i}.conf`)
    await writeFile(path, settingsOf(own, port, dir))
    ports.push(own)
    sentinels.push(run(program, [path, '--sentinel']))
  }
  const ask = async (...command: [string, ...string[]]): Promise<unknown[]> =>
    Promise.all(
      ports.map(async (own) => {
        const sentinel = new Redis(own, {
          lazyConnect: true,
          password: SENTINEL_PASSWORD,
          retryStrategy: () => null,
        })
        sentinel.on('error', () => {})
        await sentinel.connect()
        return sentinel.call(...command).finally(() => sentinel.disconnect())
      }),
    )
  const fieldOf = (fields: string[], name: string) => fields[fields.indexOf(name) + 1]
  await until('the Sentinels know each other', async () => {
    const answers = (await ask('SENTINEL', 'MASTER', NAME)) as string[][]
    return answers.every((fields) => fieldOf(fields, 'num-other-sentinels') === `${SENTINELS - 1}`)
  })
  await until('all Sentinels see a replica that is in touch with the primary', async () => {
    const answers = (await ask('SENTINEL', 'REPLICAS', NAME)) as string[][][]
    return answers.every(
      ([fields = []]) =>
        fieldOf(fields, 'flags') === 'slave' && fieldOf(fields, 'master-link-status') === 'ok',
    )
  })
  const hosts = ports.map((own) => `127.0.0.1:${own}`).join(',')
  return {
    url: `redis+sentinel://:${PASSWORD}@${hosts}/${NAME}?sentinelPassword=${SENTINEL_PASSWORD}`,
    primary,
    replica,
    async portOfPrimary() {
      const answers = (await ask('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', NAME)) as [string, string][]
      const [first, ...others] = answers.map(([, own]) => Number(own)).toSorted()
      return first === others[0] ? (first as number) : (others[0] as number)
    },
    async stop() {
      await Promise.all(sentinels.map((sentinel) => sentinel.end('SIGKILL')))
      await Promise.all([primary.stop(), replica.stop()])
      await rm(dir, { recursive: true, force: true })
    },
  }
}

const settingsOf = (own: number, port: string, dir: string) => `
port ${own}
bind 127.0.0.1
dir ${dir}
requirepass ${SENTINEL_PASSWORD}
sentinel sentinel-pass ${SENTINEL_PASSWORD}
sentinel monitor ${NAME} 127.0.0.1 ${port} 2
sentinel auth-pass ${NAME} ${PASSWORD}
sentinel down-after-milliseconds ${NAME} 1000
sentinel failover-timeout ${NAME} 3000
`
