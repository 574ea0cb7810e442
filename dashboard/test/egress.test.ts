/** Egress policies of an agent and its workspace, in a real browser. Rows stand for what the agent proxy counted. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { insertAgentRow } from '../../test/support/agent-row.ts'
import { actionsOn, HOSTILE, openDashboard } from './support.ts'

const { url, own, page, complaints, sql, look, signIn, newPage } = await openDashboard()
const { button, inDialog, isGone, ranNothing } = actionsOn(page)
const main = page.locator('main')
const hosts = page.getByRole('table', { name: 'Hosts of the last 7 days' })
const ada = await insertAgentRow({ query: sql }, { workspaceId: own.id, name: 'Ada', purgedAt: new Date() })
const path = `/v0/agents/${ada.agentId}/egress`
const policyOf = async (path: string) => {
  const { mode, allow, deny, source } = (await own.api.get(path)).body.data
  return { mode, allow, deny, ...(source && { source }) }
}
const count = (host: string, requests: number, denied: number) =>
  sql(
    `INSERT INTO egress_count (agent_id, day, host, requests, denied, bytes_sent, bytes_received)
     SELECT $1, (now() AT TIME ZONE 'UTC')::date, $2, n, $4, n * 2048, n * 73400 FROM (SELECT $3::bigint AS n) given`,
    [ada.id, host, requests, denied],
  )

describe('egress policies', () => {
  it('a member sets the workspace’s policy, and sees which rule is refused', async () => {
    await signIn()
    await page.goto(`${url}/dashboard/operate/egress`)
    await main.getByText('its agents may reach every public host').waitFor()
    await main.getByLabel('Denied hosts').fill('*.example.net\nhttps://ads.example.com')
    await button('Save').click()
    await main.getByRole('alert').getByText('https://ads.example.com: must be a host, such as').waitFor()
    await look('egress-refused')
    await main
      .getByLabel('Denied hosts')
      .fill('*.example.net\nAds.example.com, ads.example.com\nGET,PUT  API.example.com /v1/* /v2')
    await button('Save').click()
    await main.getByText('The workspace has this policy, set').waitFor()
    assert.deepEqual(await policyOf('/v0/egress'), {
      mode: 'open',
      allow: [],
      deny: [
        '*.example.net',
        'ads.example.com',
        { host: 'api.example.com', methods: ['GET', 'PUT'], paths: ['/v1/*', '/v2'] },
      ],
    })
    await main.getByText('Saved.').waitFor()
    await look('egress-workspace')
  })

  it('an agent gets its own policy from the hosts it asked for, and returns to the workspace’s', async () => {
    await page.goto(`${url}/dashboard/agents/${ada.agentId}/egress`)
    await main.getByText('This policy is not enforced').waitFor()
    await main.getByText('it does not use the egress proxy').waitFor()
    await sql('UPDATE agent SET proxy_key_hash = sha256($2) WHERE id = $1', [ada.id, ada.agentId])
    await count('api.example.com', 1204, 0)
    await count('tracker.example.net', 0, 31)
    await count('files.example.org', 12, 2)
    await count('2001:db8::7', 1, 0)
    await count(HOSTILE, 0, 1)
    await count('(others)', 5, 0)
    await page.reload()
    await main.getByText('the workspace’s policy applies').waitFor()
    assert.equal(await main.getByText('This policy is not enforced').count(), 0)
    // A single rule cannot allow what a wildcard denies.
    await hosts.getByText('tracker.example.net').waitFor()
    await hosts.getByText('by a rule with *.').waitFor()
    assert.equal(await button('Allow tracker.example.net').count(), 0)
    await main.getByRole('radio', { name: /^Listed hosts/ }).check()
    await button('Allow api.example.com').click()
    await button('Allow 2001:db8::7').click()
    await button('Deny api.example.com').click()
    await button('Allow api.example.com').click()
    await main.getByText('Saving gives this agent its own policy').waitFor()
    await look('agent-egress-unsaved')
    await button('Save').click()
    await main.getByText('This agent has its own policy').waitFor()
    assert.deepEqual(await policyOf(path), {
      mode: 'listed',
      allow: ['[2001:db8::7]', 'api.example.com'],
      deny: ['*.example.net', 'ads.example.com'],
      source: 'agent',
    })
    await look('agent-egress')
    await main.getByRole('radio', { name: /^No host/ }).check()
    assert.equal(await hosts.getByRole('button').count(), 0)
    await button('Discard').click()
    await button('Use the workspace’s policy').click()
    await inDialog('Use the workspace’s policy').click()
    await isGone()
    await main.getByText('the workspace’s policy applies').waitFor()
    assert.equal((await policyOf(path)).source, 'workspace')
    await ranNothing()
  })

  it('viewers see policies and hosts, and change nothing', async () => {
    const { name } = await own.member('viewer')
    const on = await newPage()
    await signIn(on, name)
    for (const [path, shown] of [
      [`agents/${ada.agentId}/egress`, 'tracker.example.net'],
      ['operate/egress', 'The workspace has this policy, set'],
    ]) {
      await on.goto(`${url}/dashboard/${path}`)
      await on
        .locator('main')
        .getByText(shown ?? '')
        .waitFor()
      await on.locator('main').getByLabel('Denied hosts').waitFor()
      const changes = on.locator('main').getByRole('button', { name: /^(Allow|Deny|Save|Use|Remove)/ })
      assert.equal(await changes.count(), 0, path)
      assert.equal(await on.locator('main').locator('input:enabled, textarea:enabled').count(), 0, path)
    }
    await on.context().close()
  })

  it('the browser reported no errors', () => assert.deepEqual(complaints, []))
})
