import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findPrice, type ListedPrice, PRICE_SOURCES, PRICES } from './prices.ts'

test('the prices of the engine’s default models are listed, in picodollars per token', () => {
  assert.deepEqual(findPrice('anthropic', 'claude-opus-5'), {
    input: 5_000_000,
    output: 25_000_000,
    cachedInput: 500_000,
    cacheWrite: 6_250_000,
    maxOutput: 128_000,
  })
  assert.deepEqual(findPrice('google', 'gemini-3.1-pro-preview'), {
    input: 2_000_000,
    output: 12_000_000,
    cachedInput: 200_000,
    maxOutput: 65_536,
    long: { above: 200_000, input: 2, output: 1.5 },
  })
  assert.equal(findPrice('openai', 'gpt-5.5')?.output, 30_000_000)
})

test('a version of a model costs what the model does, unless it has a price of its own', () => {
  const prices: ListedPrice[] = [
    { provider: 'a', model: 'm', input: 1, output: 2 },
    { provider: 'a', model: 'm-2024-05-13', input: 5, output: 6 },
  ]
  const input = (model: string) => findPrice('a', model, { prices })?.input
  for (const model of ['m', 'm-2026-01-31', 'm-20260131', 'm-latest', 'm-001'])
    assert.equal(input(model), 1_000_000, model)
  assert.equal(input('m-2024-05-13'), 5_000_000)
  for (const model of ['m-mini', 'm-preview', 'm-2026', 'M', 'x/m', 'm-latest-2026-01-31'])
    assert.equal(input(model), undefined, model)
  assert.equal(findPrice('b', 'm', { prices }), undefined)
})

test('an announced price counts from its date, and a later row replaces an earlier one', () => {
  const prices: ListedPrice[] = [
    { provider: 'a', model: 'm', input: 1, output: 2 },
    { provider: 'a', model: 'm', from: '2027-01-01', input: 3, output: 4 },
  ]
  const input = (at: string, all = prices) => findPrice('a', 'm', { prices: all, at: new Date(at) })?.input
  assert.equal(input('2026-12-31T23:59:59Z'), 1_000_000)
  assert.equal(input('2027-01-01T00:00:00Z'), 3_000_000)
  const own = [...prices, { provider: 'a', model: 'm', input: 0, output: 0 }]
  assert.equal(input('2027-01-01T00:00:00Z', own), 0)
})

test('each listed price has a source, is a whole number of picodollars, and is plausible', () => {
  for (const row of PRICES) {
    const name = `${row.provider}/${row.model}`
    assert.ok(row.provider in PRICE_SOURCES, name)
    const price = findPrice(row.provider, row.model, { prices: [row], at: new Date('2100-01-01') })
    const { maxOutput, long, ...rates } = price ?? { input: -1 }
    for (const rate of Object.values(rates)) assert.ok(Number.isInteger(rate) && rate >= 0, name)
    assert.ok((row.cachedInput ?? 0) < row.input, `${name}: cached input is cheaper`)
    assert.ok(row.output === 0 || row.output > row.input, `${name}: output is dearer`)
    assert.ok(!long || (long.above >= 100_000 && long.input >= 1 && long.output >= 1), name)
    assert.ok(maxOutput === undefined || maxOutput >= 4096, name)
  }
})
