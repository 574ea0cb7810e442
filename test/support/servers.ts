/** Real Redis and PostgreSQL servers for a test, on free ports of loopback. */
import { execFileSync } from 'node:child_process'
import { chownSync, existsSync, readdirSync } from 'node:fs'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import pg from 'pg'
import { freePort, type Running, run, until } from './processes.ts'

export interface Server {
  readonly url: string
  /** Kills it like a crash; `restart` brings it back on the same port with the same data. */
  kill(): Promise<void>
  /** Stops it in good order, without waiting for its clients; its data stays. */
  halt(): Promise<void>
  restart(): Promise<void>
  /** Hangs it, like a machine that is cut off; `resume` continues it. */
  pause(): void
  resume(): void
  /** Output of the server since its last start. */
  output(): string
  /** Stops it and removes its data. */
  stop(): Promise<void>
}

/** Why tests on Redis are skipped; false if it is installed. */
export const withoutRedis: string | false = isOnPath('redis-server') ? false : 'redis-server is not installed'

export function isOnPath(program: string): boolean {
  const folders = (process.env.PATH ?? '').split(delimiter)
  return folders.some((folder) => existsSync(join(folder, program)))
}

/**
 * A Redis with the settings of production: appendonly, noeviction.
 * @param within the parent of its data folder.
 * @param settings of the server itself, by name.
 * @param program that of another server with the same settings.
 */
export async function startRedis(
  within = tmpdir(),
  settings: Record<string, string> = {},
  program = 'redis-server',
): Promise<Server> {
  const dir = await mkdtemp(join(within, 'berth-redis-'))
  const port = await freePort()
  const url = `redis://127.0.0.1:${port}`
  const args = [
    '--port',
    port,
    '--bind',
    '127.0.0.1',
    '--dir',
    dir,
    '--appendonly',
    'yes',
    '--maxmemory-policy',
    'noeviction',
    ...Object.entries(settings).flatMap(([name, value]) => [`--${name}`, ...value.split(' ')]),
  ]
  return startServer(url, dir, {
    launch: () => run(program, args.map(String)),
    async ready() {
      const { Redis } = await import('ioredis')
      const redis = new Redis(url, {
        lazyConnect: true,
        retryStrategy: () => null,
        maxRetriesPerRequest: 0,
        ...(settings.requirepass && { password: settings.requirepass }),
      })
      redis.on('error', () => {})
      try {
        await redis.connect()
        return (await redis.ping()) === 'PONG'
      } finally {
        redis.disconnect()
      }
    },
    stopSignal: 'SIGTERM',
  })
}

/** The programs of the distribution's PostgreSQL; undefined if it is not installed. */
export const postgresBin: string | undefined = findPostgresBin()

function findPostgresBin(): string | undefined {
  const root = '/usr/lib/postgresql'
  const versions = existsSync(root) ? readdirSync(root).sort((a, b) => Number(b) - Number(a)) : []
  return versions.map((version) => join(root, version, 'bin')).find((bin) => existsSync(join(bin, 'initdb')))
}

/**
 * The distribution's PostgreSQL, with a database `berth`; as root it runs as user `postgres`.
 * @param within the parent of its data folder.
 * @param settings of the server itself, by name.
 * @param primary whose streaming replica it becomes.
 */
export async function startPostgres(
  within = tmpdir(),
  settings: Record<string, string> = {},
  primary?: Server,
): Promise<Server> {
  const bin = findPostgres()
  const dir = await mkdtemp(join(within, 'berth-pg-'))
  const port = await freePort()
  const as: { uid?: number; gid?: number } = process.getuid?.() === 0 ? userIds('postgres') : {}
  if (as.uid !== undefined && as.gid !== undefined) chownSync(dir, as.uid, as.gid)
  const data = join(dir, 'data')
  const [make, ...how] = primary
    ? ['pg_basebackup', '-D', data, '-R', '-c', 'fast', '-d', primary.url]
    : ['initdb', '-D', data, '-U', 'berth', '-A', 'trust', '-E', 'UTF8', '--locale=C.UTF-8']
  execFileSync(join(bin, make as string), how, { ...as, cwd: dir, stdio: 'pipe' })
  const url = `postgres://berth@127.0.0.1:${port}/berth`
  const args = [
    '-D',
    data,
    '-p',
    port,
    '-c',
    'listen_addresses=127.0.0.1',
    '-c',
    `unix_socket_directories=${dir}`,
    '-c',
    'max_connections=200',
    ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
  ]
  const query = async (database: string, sql: string) => {
    const client = new pg.Client({ connectionString: `postgres://berth@127.0.0.1:${port}/${database}` })
    client.on('error', () => {})
    try {
      await client.connect()
      return await client.query(sql)
    } finally {
      await client.end().catch(() => {})
    }
  }
  return startServer(url, dir, {
    launch: () => run(join(bin, 'postgres'), args.map(String), { ...as, cwd: dir }),
    async ready() {
      const { rows } = await query('postgres', `SELECT 1 FROM pg_database WHERE datname = 'berth'`)
      if (rows.length === 0) await query('postgres', 'CREATE DATABASE berth')
      return true
    },
    // Fast shutdown: it does not wait for clients.
    stopSignal: 'SIGINT',
  })
}

async function startServer(
  url: string,
  dir: string,
  how: { launch(): Running; ready(): Promise<boolean>; stopSignal: NodeJS.Signals },
): Promise<Server> {
  let running: Running
  const start = async () => {
    running = how.launch()
    await until(`${url} answers`, async () => {
      // After a SIGKILL its sessions may still hold the shared memory for a moment, in which case it exits at once.
      if (running.process.exitCode !== null) running = how.launch()
      return how.ready()
    }).catch((error) => {
      throw new Error(`${error.message}\n${running.output()}`, { cause: error })
    })
  }
  await mkdir(dir, { recursive: true })
  await start()
  return {
    url,
    restart: start,
    pause: () => running.signal('SIGSTOP'),
    resume: () => running.signal('SIGCONT'),
    kill: () => running.end('SIGKILL'),
    halt: () => running.end(how.stopSignal),
    output: () => running.output(),
    async stop() {
      await running.end(how.stopSignal)
      await rm(dir, { recursive: true, force: true })
    },
  }
}

function findPostgres(): string {
  if (!postgresBin) throw new Error('PostgreSQL is not installed: apt-get install postgresql')
  return postgresBin
}

export function userIds(name: string): { uid: number; gid: number } {
  const id = (flag: string) => Number(execFileSync('id', [flag, name], { encoding: 'utf8' }))
  return { uid: id('-u'), gid: id('-g') }
}
