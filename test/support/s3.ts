/** An S3 server for a test: versitygw on a folder, on a free port of loopback. */
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { freePort, run, until } from './processes.ts'

/** The versitygw binary that tests may use, or undefined: `scripts/ci/versitygw.sh` builds one. */
const binary = process.env.BERTH_TEST_S3 || undefined
/** Why S3 tests cannot run here; false if they can. */
export const withoutS3 = !binary && 'needs BERTH_TEST_S3'

export interface S3Server {
  /** Settings with which the AWS SDK, and Berth, reach it. */
  readonly env: Record<string, string>
  /** Creates a bucket. @returns the folder that has its objects as files. */
  createBucket(name: string): Promise<string>
  /** Settings with the key of a user without permissions. */
  createStranger(): Promise<Record<string, string>>
  kill(): Promise<void>
  stop(): Promise<void>
}

/** A server with a bucket for the blocks of a Berth, and its settings. */
export async function startBlocks(): Promise<Pick<S3Server, 'env' | 'stop'> & { folder: string }> {
  const s3 = await startS3()
  const folder = await s3.createBucket('blocks')
  const env = { ...s3.env, BERTH_BLOCKS_S3_URL: 's3://blocks/of', BERTH_S3_PATH_STYLE: 'true' }
  return { env, folder, stop: s3.stop }
}

export async function startS3(): Promise<S3Server> {
  if (!binary) throw new Error('BERTH_TEST_S3 is not set: it names versitygw, see scripts/ci/versitygw.sh')
  const dir = await mkdtemp(join(tmpdir(), 'berth-s3-'))
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const folders = {
    objects: join(dir, 'objects'),
    attributes: join(dir, 'attributes'),
    users: join(dir, 'users'),
  }
  for (const folder of Object.values(folders)) await mkdir(folder)
  const keys = { ROOT_ACCESS_KEY: 'tester', ROOT_SECRET_KEY: 'secret of the tests' }
  const args = ['--port', `127.0.0.1:${port}`, '--iam-dir', folders.users, '--quiet', 'posix']
  const server = run(binary, [...args, '--sidecar', folders.attributes, folders.objects], {
    env: { ...process.env, ...keys },
  })
  await until('versitygw answers', async () => {
    if (server.process.exitCode !== null) throw new Error(server.output())
    return fetch(url).then(
      () => true,
      () => false,
    )
  })
  const env = {
    AWS_ENDPOINT_URL_S3: url,
    AWS_REGION: 'us-east-1',
    AWS_ACCESS_KEY_ID: keys.ROOT_ACCESS_KEY,
    AWS_SECRET_ACCESS_KEY: keys.ROOT_SECRET_KEY,
  }
  const admin = ['admin', '--access', keys.ROOT_ACCESS_KEY, '--secret', keys.ROOT_SECRET_KEY]
  return {
    env,
    async createBucket(name) {
      const folder = join(folders.objects, name)
      await mkdir(folder)
      return folder
    },
    async createStranger() {
      const user = ['create-user', '--access', 'stranger', '--secret', 'another secret', '--role', 'user']
      await promisify(execFile)(binary, [...admin, '--endpoint-url', url, ...user])
      return { ...env, AWS_ACCESS_KEY_ID: 'stranger', AWS_SECRET_ACCESS_KEY: 'another secret' }
    },
    kill: () => server.end('SIGKILL'),
    async stop() {
      await server.end()
      await rm(dir, { recursive: true, force: true })
    },
  }
}
