/** `GET /v0/ipfs/node`: the identity and addresses of the IPFS node. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { stackKind } from '../support/stack.ts'
import { openContext } from './context.ts'

const { workspace } = await openContext()
const { api } = await workspace()

describe('the IPFS node', () => {
  it('the IPFS node route returns its identity', async () => {
    const { status, body } = await api.get('/v0/ipfs/node')
    assert.equal(status, 200)
    const { driver, agent, peer_id, addresses, repo_bytes, ...rest } = body.data
    assert.deepEqual(rest, {})
    assert.equal(driver, stackKind === 'real' ? 'kubo' : 'embedded')
    assert.match(agent, stackKind === 'real' ? /^kubo\// : /^berth-embedded/)
    assert.ok(repo_bytes === null || repo_bytes >= 0)
    if (stackKind !== 'real') return
    assert.match(peer_id, /^12D3KooW/)
    assert.ok(addresses.length > 0)
    for (const address of addresses) assert.ok(address.endsWith(`/p2p/${peer_id}`), address)
  })
})
