/** The loop that checks TXT records of agent domains and gateway domains. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, describe, it } from 'node:test'
import { pino } from 'pino'
import { uuidv7 } from 'uuidv7'
import { DnsAwayError, Ownership } from '../../../src/domains/ownership.ts'
import { verifyPendingDomains } from '../../../src/domains/verification.ts'
import { insertAgentRow } from '../../support/agent-row.ts'
import { startDatabase, type TestDatabase } from '../../support/database.ts'
import { type DnsServer, startDnsServer } from '../../support/dns.ts'

/** The name servers of some domains do not respond. */
class PartlyAway extends Ownership {
  override isProven(workspaceId: string, domain: string): Promise<boolean> {
    if (domain.startsWith('away')) return Promise.reject(new DnsAwayError(domain))
    return super.isProven(workspaceId, domain)
  }
}

describe('domains that wait for their proof', () => {
  let database: TestDatabase
  let dns: DnsServer
  before(async () => {
    database = await startDatabase()
    dns = await startDnsServer()
  })
  after(async () => {
    await database?.stop()
    await dns?.close()
  })

  it('waiting domains are verified even if other domains’ name servers do not respond', async () => {
    const { pool } = database
    const workspaceId = await database.createWorkspace()
    const { id: agent } = await insertAgentRow(pool, { workspaceId })
    const ownership = new PartlyAway({ BERTH_DNS_SERVER: dns.address })
    const names = ['away1.example.test', 'own.example.test', 'away2.example.test']
    for (const name of names) {
      await pool.query(
        `INSERT INTO domain (id, agent_id, workspace_id, user_id, custom_domain, target_port, status, created_at)
         VALUES ($1, $2, $3, $4, $5, 3000, 'pending_ownership', now() - interval '5 minutes')`,
        [uuidv7(), agent, workspaceId, randomUUID(), name],
      )
      const record = ownership.challenge(workspaceId, name)
      dns.setTxt(record.name, record.value)
    }
    const gateway = uuidv7()
    await pool.query('INSERT INTO gateway (id, workspace_id, domain) VALUES ($1, $2, $3)', [
      gateway,
      workspaceId,
      'of-a-domain',
    ])
    for (const name of ['files.example.test', 'unproven.example.test'])
      await pool.query(
        `INSERT INTO domain (id, gateway_id, workspace_id, user_id, custom_domain, status, created_at)
         VALUES ($1, $2, $3, $4, $5, 'pending_ownership', now() - interval '5 minutes')`,
        [uuidv7(), gateway, workspaceId, randomUUID(), name],
      )
    const record = ownership.challenge(workspaceId, 'files.example.test')
    dns.setTxt(record.name, record.value)
    await verifyPendingDomains({ pool, ownership }, pino({ level: 'silent' }), AbortSignal.timeout(60_000))
    const { rows } = await pool.query(
      `SELECT custom_domain AS name FROM domain WHERE status = 'verified' ORDER BY 1`,
    )
    assert.deepEqual(rows, [{ name: 'files.example.test' }, { name: 'own.example.test' }])
  })
})
