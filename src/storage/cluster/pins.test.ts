import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CID } from 'multiformats/cid'
import type { ClusterClient } from './client.ts'
import { ClusterPins } from './pins.ts'

const MINUTE_MS = 60_000
const CONTENT = CID.parse('bafkreigh2akiscaildcqabsyg3dfr6chu3fgpregiymsck7e7aqa4s52zy')

test('a peer is lost once looks have missed it for long, and not because one late look did', async (t) => {
  t.mock.timers.enable({ apis: ['Date'], now: Date.parse('2026-11-30') })
  let present = ['own', 'other']
  const answers = {
    '/id': () => ({ cluster_peers: present }),
    [`/allocations/${CONTENT}`]: () => ({ name: 'berth', allocations: ['own', 'other'] }),
  }
  const call = async (_method: string, path: string) => answers[path]?.()
  const pins = new ClusterPins({ call } as unknown as ClusterClient, {
    name: 'berth',
    replication: { min: 2, max: 2 },
    replicasOf: async () => new Map(),
    lostMs: MINUTE_MS,
  })
  pins.own = 'own'
  const isWholeAfter = (ms: number) => {
    t.mock.timers.tick(ms)
    return pins.has(CONTENT, AbortSignal.abort())
  }
  assert.equal(await isWholeAfter(0), true)
  present = ['own']
  assert.equal(await isWholeAfter(60 * MINUTE_MS), true)
  assert.equal(await isWholeAfter(MINUTE_MS), true)
  assert.equal(await isWholeAfter(MINUTE_MS), false)
  present = ['own', 'other']
  assert.equal(await isWholeAfter(0), true)
})
