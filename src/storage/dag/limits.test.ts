import assert from 'node:assert/strict'
import { test } from 'node:test'
import { turn } from './limits.ts'

test('walkers take turns in order, one per round of the event loop', async () => {
  const order: string[] = []
  let round = 0
  let isCounting = true
  const count = () => {
    round++
    if (isCounting) setImmediate(count)
  }
  setImmediate(count)
  const walk = async (name: string) => {
    const rounds: number[] = []
    for (let i = 0; i < 5; i++) {
      await turn()
      order.push(name)
      rounds.push(round)
    }
    return rounds
  }
  const rounds = (await Promise.all(['a', 'b', 'c'].map(walk))).flat()
  isCounting = false
  assert.equal(order.join(''), 'abc'.repeat(5))
  assert.equal(new Set(rounds).size, rounds.length)
})
