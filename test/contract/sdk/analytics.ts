import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, it } from 'node:test'
import type { TopAnalyticsResponse } from 'pinata'
import { until } from '../../support/processes.ts'
import type { Sdk } from './open.ts'

const today = () => new Date().toISOString().slice(0, 10)

export function describeAnalytics({ watched: sdk, plain, upload, gateway }: Sdk): void {
  describe('sdk.analytics', () => {
    it('sdk.analytics: requests, bandwidth and summary, with every filter', async () => {
      const name = `${randomBytes(8).toString('hex')}.bin`
      const { cid } = await upload('public', name)
      const address = await plain.gateways.public.convert(`ipfs://${cid}`)
      const said = { 'user-agent': `robot ${name}`, referer: 'https://example.com/page' }
      for (let i = 0; i < 3; i++) await (await fetch(address, { headers: said })).arrayBuffer()
      const days = { domain: gateway, start: today(), end: today(), interval: 'day' as const }
      const summary = sdk.analytics.summary(days).cid(cid)
      await until('three are counted', async () => (await summary).total_requests === 3)
      const { total_bandwidth: bandwidth } = await summary
      assert.ok(bandwidth > 3000, `${bandwidth}`)
      const counted = { requests: 3, bandwidth }
      for (const measure of ['requests', 'bandwidth'] as const) {
        const start = () => sdk.analytics[measure]
        // The SDK has one builder for all calls, and it keeps earlier settings.
        for (const builder of [start, () => start().from(gateway).from(gateway)]) {
          builder().days(1)
          builder().limit(10)
          builder().sort('desc')
          builder().customDates(today(), today())
          const found: [() => PromiseLike<TopAnalyticsResponse>, string][] = [
            [() => builder().cid(cid), cid],
            [() => builder().fileName(name), name],
            [() => builder().userAgent(said['user-agent']), said['user-agent']],
            [() => builder().referer(said.referer), 'https://example.com'],
          ]
          for (const [ask, value] of found)
            assert.deepEqual((await ask()).data, [{ value, ...counted }], `${measure} of ${value}`)
          assert.deepEqual((await builder().country()).data, [])
          assert.deepEqual((await builder().region()).data, [])
          assert.deepEqual((await builder()).data, [])
        }
      }
      const all = summary.fileName(name).userAgent(said['user-agent']).referer(said.referer)
      const asked = all.limit(5).sort('asc').sortBy('bandwidth')
      const totals = { total_requests: 3, total_bandwidth: bandwidth }
      const time_periods = [{ period_start_time: today(), ...counted }]
      assert.deepEqual(await asked.all(), { ...totals, time_periods })
      const weeks = await sdk.analytics.summary({ ...days, interval: 'week' }).cid(cid)
      assert.equal(weeks.total_requests, 3)
      const nowhere = await sdk.analytics.summary(days).country('us').region('us - TN')
      assert.deepEqual(nowhere, { total_requests: 0, total_bandwidth: 0, time_periods: [] })
    })
  })

  describe('sdk.signatures', () => {
    it('sdk.signatures.public: add, get, delete', async () => {
      const { cid } = await upload('public')
      const hex = (bytes: number) => `0x${randomBytes(bytes).toString('hex')}`
      const signed = { signature: hex(65), address: hex(20) }
      const added = await sdk.signatures.public.add({ cid, ...signed })
      assert.deepEqual(added, { cid, ...signed })
      assert.deepEqual(await sdk.signatures.public.get(cid), added)
      assert.equal(await sdk.signatures.public.delete(cid), 'OK')
      await assert.rejects(sdk.signatures.public.get(cid), { statusCode: 404 })
    })
  })
}
