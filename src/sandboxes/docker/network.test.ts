import assert from 'node:assert/strict'
import { test } from 'node:test'
import { freeSubnet, subnetOf } from './network.ts'

test('every network of a pool is assigned once, and then none is left', () => {
  const taken: string[] = []
  for (let i = 0; i < 32; i++) {
    const found = freeSubnet('10.231.4.0/24', taken, `x${i}`)
    assert(found)
    assert.match(found.subnet, /^10\.231\.4\.\d+\/29$/)
    assert.deepEqual(subnetOf(found.address), found)
    taken.push(found.subnet)
  }
  assert.equal(new Set(taken).size, 32)
  assert.equal(freeSubnet('10.231.4.0/24', taken, 'xone'), undefined)
})

test('an agent gets its previous network again while it is free', () => {
  const first = freeSubnet('10.231.0.0/16', [], 'xabcdefg')
  assert.deepEqual(freeSubnet('10.231.0.0/16', [], 'xabcdefg'), first)
  const other = freeSubnet('10.231.0.0/16', [first?.subnet ?? ''], 'xabcdefg')
  assert.notEqual(other?.subnet, first?.subnet)
})

test('a network that overlaps a taken one of any size is not assigned', () => {
  assert.equal(freeSubnet('10.231.4.0/24', ['10.231.0.0/16'], 'xone'), undefined)
  assert.equal(freeSubnet('10.231.4.0/28', ['10.231.4.12/30'], 'xone')?.subnet, '10.231.4.0/29')
  assert.equal(
    freeSubnet('10.231.4.0/28', ['10.231.4.5/32', '172.17.0.0/16', 'fe80::/64'], 'xone')?.subnet,
    '10.231.4.8/29',
  )
  assert.deepEqual(freeSubnet('200.255.255.248/29', ['0.0.0.0/8'], 'xone'), {
    subnet: '200.255.255.248/29',
    gateway: '200.255.255.249',
    address: '200.255.255.250',
  })
})
