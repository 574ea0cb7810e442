/** Packages that each role loads, and so keeps in memory and exposes to attacks: only those that it uses. */
import assert from 'node:assert/strict'
import { chmod, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { type Stack, startStack } from '../support/stack.ts'

const RECORDER = new URL('../support/record-packages.ts', import.meta.url).href

/** Packages that each role uses, and packages that it must never load. */
const ROLES = {
  web: {
    uses: ['express', 'pg'],
    never: [
      'dockerode',
      '@kubernetes/client-node',
      'kubo-rpc-client',
      'libp2p',
      '@aws-sdk/client-s3',
      'sharp',
      '@simplewebauthn/server',
      'openid-client',
    ],
  },
  worker: {
    uses: ['pg', 'bullmq'],
    never: ['@kubernetes/client-node', 'express', '@fastify/busboy', 'helmet', '@aws-sdk/client-s3'],
  },
  'agent-proxy': {
    uses: ['pino'],
    never: [
      'express',
      'dockerode',
      '@kubernetes/client-node',
      'pg',
      'bullmq',
      'ioredis',
      '@prisma/client',
      'kubo-rpc-client',
      'libp2p',
    ],
  },
}

describe('a role that has started', () => {
  let folder: string
  let stack: Stack
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'berth-packages-'))
    await chmod(folder, 0o777)
    stack = await startStack({
      kind: 'embedded',
      database: 'of the run',
      env: { NODE_OPTIONS: `--import=${RECORDER}`, BERTH_TEST_PACKAGES: folder },
    })
  })
  after(async () => {
    await stack?.stop()
    await rm(folder, { recursive: true, force: true })
  })

  for (const [role, { uses, never }] of Object.entries(ROLES))
    it(`${role} has loaded ${uses.join(' and ')}, and none of ${never.join(', ')}`, async () => {
      const loaded = new Set((await readFile(join(folder, role), 'utf8')).trim().split('\n'))
      assert.deepEqual(
        uses.filter((name) => !loaded.has(name)),
        [],
      )
      assert.deepEqual(
        never.filter((name) => loaded.has(name)),
        [],
      )
    })
})
