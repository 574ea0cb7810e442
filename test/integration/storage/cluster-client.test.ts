import assert from 'node:assert/strict'
import type { RequestListener } from 'node:http'
import { describe, type TestContext, test } from 'node:test'
import { ClusterAuthError, ClusterClient } from '../../../src/storage/cluster/client.ts'
import { listen } from '../../support/http-server.ts'
import { failsWith } from './cases/context.ts'

/** Responses of IPFS Cluster that the tests with real peers do not bring about. */
describe('client of IPFS Cluster', () => {
  const { signal } = new AbortController()

  async function open(t: TestContext, respond: RequestListener, user = ''): Promise<ClusterClient> {
    const client = new ClusterClient((await listen(respond)).replace('//', `//${user}`))
    t.after(() => client.close())
    return client
  }

  test('a list that Cluster cuts short is an error', async (t) => {
    const client = await open(t, (_, response) => {
      response.writeHead(200, { trailer: 'X-Stream-Error' })
      response.write('{"cid":"a"}\n{"cid":')
      response.addTrailers({ 'X-Stream-Error': 'the state cannot be read' })
      response.end('"b"}\n')
    })
    const rows: unknown[] = []
    const read = async () => {
      for await (const row of client.rows('/allocations', { signal })) rows.push(row)
    }
    await assert.rejects(read, failsWith('unavailable'))
    assert.deepEqual(rows, [{ cid: 'a' }, { cid: 'b' }])
  })

  test('an error of Cluster is unavailable, with its message', async (t) => {
    const client = await open(t, ({ url }, response) => {
      if (url?.startsWith('/id')) response.end('<html>')
      else response.writeHead(500).end('{"code":500,"message":"not enough peers to allocate CID"}')
    })
    const pinning = client.call('POST', '/pins/a', { signal })
    await assert.rejects(pinning, { code: 'unavailable', message: /500: not enough peers/ })
    await assert.rejects(client.call('GET', '/id', { signal }), failsWith('unavailable'))
    await assert.rejects(client.call('GET', '/id', { signal: AbortSignal.abort() }), failsWith('aborted'))
  })

  test('a wrong password is an error of its own', async (t) => {
    const respond: RequestListener = ({ headers }, response) => {
      const isUser = headers.authorization === `Basic ${btoa('user:p@ss')}`
      response.writeHead(isUser ? 200 : 401).end('{"message":"unauthorized: access denied"}')
    }
    const [user, stranger] = [await open(t, respond, 'user:p%40ss@'), await open(t, respond)]
    assert.ok(await user.call('GET', '/id', { signal }))
    await assert.rejects(stranger.call('GET', '/id', { signal }), ClusterAuthError)
  })
})
