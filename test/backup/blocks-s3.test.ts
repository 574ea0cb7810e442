/** A Berth whose blocks are in S3: processes share them, they move there from a folder, and a backup has all of them. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { createPool } from '../../src/db/pool.ts'
import { createLogger } from '../../src/log.ts'
import { startDatabase } from '../support/database.ts'
import { gatewayReader } from '../support/gateway.ts'
import { freePort, type Running, run, until } from '../support/processes.ts'
import { type S3Server, startS3, withoutS3 } from '../support/s3.ts'
import { type Stack, startStack } from '../support/stack.ts'
import { berth, type Content, type Filled, fill, makeDir, upload } from './world.ts'

const MAIN = fileURLToPath(new URL('../../src/main.ts', import.meta.url))

describe('blocks in s3', { skip: withoutS3, timeout: 400_000 }, () => {
  let server: S3Server
  let stack: Stack
  let filled: Filled
  let root: string
  /** The settings of blocks in S3. */
  let there: NodeJS.ProcessEnv
  const stops: (() => Promise<unknown>)[] = []
  before(async () => {
    const made = await makeDir()
    root = made.path
    stops.push(made.remove)
    server = await startS3()
    stops.push(() => server.stop())
    await server.createBucket('blocks')
    there = { ...server.env, BERTH_S3_PATH_STYLE: 'true', BERTH_BLOCKS_S3_URL: 's3://blocks/first' }
    stack = await startStack({
      env: {
        ...server.env,
        BERTH_S3_PATH_STYLE: 'true',
        BERTH_RUNTIME: 'process',
        BERTH_QUEUES: 'pins,repairs,storage',
        BERTH_INTERVALS: 'reconcile=1',
      },
      database: 'of the run',
    })
    stops.push(() => stack.stop())
    filled = await fill(stack)
  })
  after(async () => {
    for (const stop of stops.reverse()) await stop()
  })

  const restartWith = async (env: NodeJS.ProcessEnv) => {
    await stack.kill()
    for (const [name, value] of Object.entries(env))
      if (value === undefined) delete stack.env[name]
      else stack.env[name] = value
    await stack.restart()
  }
  const served = async (url: string, { cid, network, bytes }: Content) => {
    if (network === 'private') return
    const gateway = gatewayReader(url, 'default.gateway.localhost')
    assert.ok((await gateway.get(`/ipfs/${cid}`)).bytes.equals(bytes))
  }

  it('blocks move from the folder to s3 while Berth is in use', async () => {
    await restartWith({
      ...there,
      IPFS_API_URL_PREVIOUS: 'embedded',
      IPFS_PRIVATE_API_URL_PREVIOUS: 'embedded',
    })
    filled.contents.push(await upload(filled.api, 'public', randomBytes(400_000), { name: 'meanwhile' }))
    const pool = createPool(stack.env.DATABASE_URL ?? '', 1, createLogger('test', 'silent'))
    await until('all is copied', async () => {
      const { rowCount } = await pool.query('SELECT FROM node_root')
      return rowCount === filled.contents.length
    })
    await pool.end()
    await berth(stack.env, 'storage', 'verify')
    await restartWith({ IPFS_API_URL_PREVIOUS: undefined, IPFS_PRIVATE_API_URL_PREVIOUS: undefined })
    // The first is swapped for the second.
    for (const content of filled.contents.slice(1)) await served(stack.url, content)
  })

  it('two web and two worker processes share blocks, which survive the death of some', async () => {
    const port = await freePort()
    const url = `http://127.0.0.1:${port}`
    const others: Running[] = []
    for (const role of ['web', 'worker']) {
      // A machine of its own, except for the keys.
      const env = { ...stack.env, PORT: `${port}`, BERTH_METRICS_PORT: '0' }
      others.push(run(process.execPath, [MAIN, role], { env }))
    }
    stops.push(async () => {
      for (const other of others) await other.end('SIGKILL')
    })
    await until('the other web process is ready', async () => (await fetch(`${url}/readyz`)).ok)
    const second = Object.assign(Object.create(filled.api), { url }) as typeof filled.api
    const uploads = await Promise.all(
      Array.from({ length: 12 }, (_, i) =>
        upload(i % 2 ? filled.api : second, 'public', randomBytes(i % 3 ? 30_000 : 1_400_000), {
          name: `${i}`,
        }),
      ),
    )
    for (const [i, content] of uploads.entries()) await served(i % 2 ? url : stack.url, content)
    const [gone] = uploads.splice(0, 1)
    await filled.api.delete(`/v3/files/public/${gone?.id}`)
    for (const other of others) await other.end('SIGKILL')
    assert.match(await berth(stack.env, 'gc'), /✔ public/)
    for (const content of uploads) await served(stack.url, content)
    filled.contents.push(...uploads)
  })

  it('a backup of blocks in s3 has all of them, and is restored into another prefix', async () => {
    const folder = join(root, 'backup')
    const keys = { BERTH_BACKUP_PASSPHRASE: 'a passphrase of the tests' }
    await berth({ ...stack.env, ...keys }, 'backup', folder, '--with-keys')
    const target = await startDatabase({ isEmpty: true })
    stops.push(() => target.stop())
    const second = {
      ...stack.env,
      ...keys,
      DATABASE_URL: target.url,
      BERTH_DATA_DIR: join(root, 'second'),
      BERTH_BLOCKS_S3_URL: 's3://blocks/second',
    }
    const halfway = `restore-after-content@${join(root, 'restored')}`
    await assert.rejects(berth({ ...second, BERTH_CRASH_AT: halfway }, 'restore', folder))
    await berth(second, 'restore', folder)
    assert.match(await berth(second, 'storage', 'verify'), /✔ public .*whole\n✔ private .*whole/)
    await assert.rejects(
      berth({ ...second, BERTH_BLOCKS_S3_URL: 's3://blocks/first' }, 'gc'),
      /has the blocks of another Berth/,
    )
  })

  it('with s3 away, uploads are refused in time, and the health of Berth says so', async () => {
    await server.kill()
    const refused = await upload(filled.api, 'public', randomBytes(700_000)).then(
      () => 'accepted',
      (error) => error.message,
    )
    assert.match(refused, /^upload: 503/)
    await until('the worker sees it', async () => {
      const { status, parts } = (await (await fetch(`${stack.url}/readyz`)).json()) as {
        status: string
        parts: Record<string, { status: string }>
      }
      return status !== 'ok' && parts.ipfs?.status === 'down'
    })
  })
})
