import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Prisma } from '../db/prisma.ts'
import { planRecord, toPlanRecord } from './plans.ts'

describe('the record of a plan', () => {
  const record = {
    name: 'free',
    agentLimit: 1,
    secretLimit: null,
    channels: false,
    customDomains: false,
    pinByCid: true,
    hotSwaps: false,
    maxFileBytes: 100,
    storageBytes: null,
    requestsPerMinute: 60,
    agentDiskMb: null,
    replicas: null,
    modelUsdPerMonth: '0.0000001',
    modelTokensPerMonth: null,
  }
  const modelUsdPerMonth = { toFixed: () => '0.0000001' } as Prisma.Decimal
  const row = { ...record, maxFileBytes: 100n, modelUsdPerMonth }

  it('the record of a plan has each field of its schema', () => {
    assert.deepEqual(toPlanRecord(row), record)
    assert.deepEqual(planRecord.strict().parse(toPlanRecord(row)), record)
  })
  it('the record of a plan leaves out a column that its schema does not name', () => {
    const wider = { ...row, price: 5 }
    assert.deepEqual(toPlanRecord(wider), record)
  })
})
