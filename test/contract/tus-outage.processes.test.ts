/** A resumable upload whose IPFS node is away when it ends. */
import assert from 'node:assert/strict'
import { readdir, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { until } from '../support/processes.ts'
import { type Stack, stackKind, startStack } from '../support/stack.ts'
import { begin, bytesOf, create, head, patch, TUS } from './tus-client.ts'

describe('a resumable upload', () => {
  let stack: Stack
  before(async () => {
    stack = await startStack()
  })
  after(() => stack?.stop())

  it('a resumable upload that comes with its creation leaves nothing where its node is away', async () => {
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

  // An embedded store that is away is the full disk of another test.
  const onlyReal = stackKind !== 'real' && 'needs BERTH_TEST_STACK=real'
  it('a resumable upload waits for its node with all its bytes', { skip: onlyReal }, async () => {
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
