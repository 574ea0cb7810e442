import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { parseKeep } from '../lib/keep.ts'
import { keptOf } from './retention.ts'

const nameOf = (day: string, hour = '03') => `${day}T${hour}-00-00.000Z`

describe('the retention of backups', () => {
  it('the retention of backups is set as numbers of days, weeks and months', () => {
    assert.deepEqual(parseKeep('7d,4w,12m'), { d: 7, w: 4, m: 12 })
    assert.deepEqual(parseKeep(' 3m , 1d'), { d: 1, w: 0, m: 3 })
    for (const text of ['', '7', '7d,,4w', '7y', '0d', '7d,3d', '-1d', '7d 4w'])
      assert.equal(parseKeep(text), undefined)
  })
  it('the retention of backups keeps the last backup of each period, and the newest one', () => {
    const days = Array.from({ length: 400 }, (_, n) =>
      new Date(Date.UTC(2026, 0, 1 + n)).toISOString().slice(0, 10),
    )
    const names = days.flatMap((day) => [nameOf(day, '03'), nameOf(day, '15')])
    const kept = [...keptOf(names, { d: 7, w: 4, m: 12 })].sort()
    const dates = kept.map((name) => name.slice(0, 10))
    assert.ok(kept.every((name) => name.includes('T15')))
    // The last of them is a Thursday, 2027-02-04.
    assert.deepEqual(dates.slice(-7), days.slice(-7))
    for (const sunday of ['2027-01-17', '2027-01-24', '2027-01-31']) assert.ok(dates.includes(sunday), sunday)
    for (const end of ['2026-03-31', '2026-12-31', '2027-01-31']) assert.ok(dates.includes(end), end)
    assert.ok(!dates.includes('2026-02-28'))
    assert.equal(kept.length, 7 + 2 + 10)
  })
  it('the newest backup is always kept', () => {
    const names = [nameOf('2026-01-01'), nameOf('2026-01-02')]
    assert.deepEqual([...keptOf(names, { d: 0, w: 0, m: 0 })], [nameOf('2026-01-02')])
    assert.deepEqual([...keptOf([], { d: 1, w: 1, m: 1 })], [])
  })
})
