/** A resumable upload whose IPFS node is unreachable when the upload ends. */
import assert from 'node:assert/strict'
import { readdir, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { until } from '../support/processes.ts'
import { type Stack, stackKind, startStack } from '../support/stack.ts'
import { begin, bytesOf, create, head, patch, TUS } from './tus-client.ts'

describe('resumable uploads', () => {
  let stack: Stack
  before(async () => {
    stack = await startStack()
  })
  after(() => stack?.stop())

  it('an upload with all its bytes in the creation leaves nothing if its node is unreachable', async () => {
    const node = stack.parts?.privateKubo
    const drafts = join(stack.dataDir, 'ipfs/private/tmp')
    await (node ? node.kill() : rename(drafts, `${drafts}.away`))
    const body = bytesOf('whole', 500_000)
    const options = { headers: TUS, body }
    const answer = await create({ url: stack.url, key: await stack.createKey() }, body.length, {}, options)
    assert.deepEqual([answer.status, answer.headers.get('location')], [503, null])
    await (node ? node.restart() : rename(`${drafts}.away`, drafts))
    assert.deepEqual(await readdir(join(stack.dataDir, 'uploads')), [])
  })

  // For the embedded store, the tests of full disks cover this.
  const onlyReal = stackKind !== 'real' && 'needs BERTH_TEST_STACK=real'
  it('a resumable upload keeps all its bytes and waits for its node', { skip: onlyReal }, async () => {
    const node = stack.parts?.privateKubo ?? assert.fail('no Kubo')
    const bytes = bytesOf('outage', 500_000)
    const { location } = await begin({ url: stack.url, key: await stack.createKey() }, bytes.length)
    await node.kill()
    const refused = await patch(location, 0, bytes)
    assert.deepEqual([refused.status, await refused.json()], [503, { error: 'IPFS node unreachable' }])
    // Clients would begin a new upload after a 5xx here.
    assert.equal((await head(location)).status, 423)
    await node.restart()
    const ended = await until('it has ended', async () => {
      const answer = await head(location)
      return answer.status === 200 && answer
    })
    assert.equal(ended.headers.get('upload-offset'), `${bytes.length}`)
    const repeated = await patch(location, bytes.length, new Uint8Array(), TUS)
    assert.deepEqual(
      [repeated.status, repeated.headers.get('upload-cid')],
      [204, ended.headers.get('upload-cid')],
    )
  })
})
