import assert from 'node:assert/strict'
import { test } from 'node:test'
import { bridgeOf, isBridgeOf } from './agent-id.ts'

test('a bridge name encodes its agent’s egress port, within Linux’s length limit', () => {
  for (const port of [1, 3128, 20_000, 65_535]) {
    const name = bridgeOf('xabc0123', port)
    assert.equal(name.length, 15)
    assert.match(name, /^bth-/)
    for (const other of [1, 3128, 20_000, 65_535]) assert.equal(isBridgeOf(other, name), other === port)
  }
  assert.notEqual(bridgeOf('xabc0123', 3128), bridgeOf('xabc0124', 3128))
})

test('other interfaces are not bridges of agents', () => {
  for (const name of ['eth0', 'docker0', 'br-0123456789ab', 'veth0123456', 'bth-xabc0123'])
    assert.ok(!isBridgeOf(3128, name), name)
})
