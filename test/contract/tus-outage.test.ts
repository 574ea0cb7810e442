/** A resumable upload whose IPFS node is away when it ends. An embedded store is never away. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { until } from '../support/processes.ts'
import { type Stack, stackKind, startStack } from '../support/stack.ts'
import { begin, bytesOf, head, patch, TUS } from './tus-client.ts'

describe('a resumable upload', { skip: stackKind !== 'real' && 'needs BERTH_TEST_STACK=real' }, () => {
  let stack: Stack
  before(async () => {
    stack = await startStack()
  })
  after(() => stack?.stop())

  it('a resumable upload waits for its node with all its bytes', async () => {
    const node = stack.parts?.privateKubo ?? assert.fail('no Kubo')
    const bytes = bytesOf('outage', 500_000)
    const { location } = await begin({ url: stack.url, key: await stack.createKey() }, bytes.length)
    await node.kill()
    const refused = await patch(location, 0, bytes)
    assert.deepEqual([refused.status, await refused.json()], [503, { error: 'IPFS node unreachable' }])
    // Clients begin a new upload when this is a 5xx.
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
