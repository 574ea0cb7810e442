import assert from 'node:assert/strict'
import { tmpdir } from 'node:os'
import { test } from 'node:test'
import Docker from 'dockerode'
import { buildImage } from './docker-build.ts'

test('an image build without tar fails, and the process survives', async (t) => {
  const { PATH } = process.env
  t.after(() => {
    process.env.PATH = PATH
  })
  process.env.PATH = '/nonexistent'
  const request = { name: 'x', context: [{ dir: tmpdir(), folder: '.' }], dockerfile: 'Dockerfile', args: {} }
  await assert.rejects(buildImage(new Docker({ socketPath: '/nonexistent' }), request), {
    name: 'SandboxError',
    message: /^x cannot be built: /,
  })
})
