import assert from 'node:assert/strict'
import { test } from 'node:test'
import { bridgeOf, isBridgeOf, isFormerBridge } from './agent-id.ts'

test('a bridge name encodes its agent’s egress port, within Linux’s length limit', () => {
  for (const port of [1, 3128, 20_000, 65_535]) {
    const name = bridgeOf('xabc0123', port)
    assert.equal(name.length, 15)
    assert.match(name, /^bth-/)
    for (const other of [1, 3128, 20_000, 65_535]) assert.equal(isBridgeOf(other, name), other === port)
    assert.ok(!isFormerBridge(name))
  }
  assert.notEqual(bridgeOf('xabc0123', 3128), bridgeOf('xabc0124', 3128))
})

test('a bridge of 0.1.0 is recognised, and other interfaces are not bridges', () => {
  assert.ok(isFormerBridge('bth-xabc0123'))
  assert.ok(!isBridgeOf(3128, 'bth-xabc0123'))
  for (const name of ['eth0', 'docker0', 'br-0123456789ab', 'veth0123456'])
    assert.ok(!isFormerBridge(name) && !isBridgeOf(3128, name), name)
})
