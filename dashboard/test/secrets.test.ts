/** Secrets of an agent with and without hosts, in a real browser. The agent is a row: nothing here needs its engine. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { insertAgentRow } from '../../test/support/agent-row.ts'
import { actionsOn, openDashboard } from './support.ts'

const { url, own, page, complaints, sql, look, signIn, newPage } = await openDashboard()
const { button, choose, dialog, inDialog, isGone, row } = actionsOn(page)
const ada = await insertAgentRow(
  { query: sql },
  { workspaceId: own.id, name: 'Ada', status: 'not_running', purgedAt: new Date() },
)
await sql('UPDATE agent SET model_key_hash = sha256($2), proxy_key_hash = sha256($2) WHERE id = $1', [
  ada.id,
  ada.agentId,
])
const path = `/v0/agents/${ada.agentId}/secrets`
const stored = async (name: string) => {
  const { secrets } = (await own.api.get('/v0/secrets')).body
  const { id, hosts, via, readable } = secrets.find((secret: { name: string }) => secret.name === name)
  return { id, hosts, via, readable }
}
/** The agent runs with the versions that secrets have now. */
const run = () =>
  sql(
    `UPDATE agent SET status = 'running', applied_secret_versions =
       (SELECT jsonb_object_agg(s.id, s.version) FROM agent_secret x JOIN secret s ON s.id = x.secret_id WHERE x.agent_id = $1)
     WHERE id = $1`,
    [ada.id],
  )

describe('secrets with hosts', () => {
  it('a secret is added with hosts, and the page says where its value goes', async () => {
    await signIn()
    await page.goto(`${url}/dashboard/agents/${ada.agentId}/secrets`)
    await button('Add a secret').click()
    await dialog.getByLabel('Name', { exact: true }).fill('catalogue_key')
    await dialog.getByLabel('Value').fill('ck-0123456789')
    await dialog.getByLabel('Hosts (optional)').fill('https://api.example.com')
    await dialog.getByLabel('How programs send it').selectOption('header')
    await dialog.getByLabel('Name of the header').fill('X-Api-Key')
    await look('secret-new')
    await inDialog('Add a secret').click()
    await dialog.getByRole('alert').getByText('hosts[0]: must be a host such as').waitFor()
    await dialog.getByLabel('Hosts (optional)').fill('api.example.com, *.example.org')
    await inDialog('Add a secret').click()
    await isGone()
    await row('CATALOGUE_KEY').getByText('Inserted at the egress proxy').waitFor()
    await row('CATALOGUE_KEY')
      .getByText('to api.example.com, *.example.org · in the header X-Api-Key')
      .waitFor()
    const { id, ...secret } = await stored('CATALOGUE_KEY')
    const hosts = ['api.example.com', '*.example.org']
    assert.deepEqual(secret, { hosts, via: { as: 'header', name: 'X-Api-Key' }, readable: false })
    assert.equal((await own.api.get(path)).body.secrets[0].id, id)
  })

  it('the page says which secrets the agent can read, and how to change that', async () => {
    for (const [name, more] of [
      ['WEATHER_TOKEN', {}],
      ['TOGETHER_API_KEY', {}],
      ['NOTES_TOKEN', { hosts: ['notes.example.com'] }],
      ['CITY', { type: 'variable', value: 'Lisbon' }],
    ] as const)
      await own.api.post('/v0/secrets', { name, value: 'wt-0123456789', ...more })
    await own.api.post(path, { secretIds: [(await stored('WEATHER_TOKEN')).id] })
    await own.api.post(path, { secretIds: [(await stored('NOTES_TOKEN')).id] })
    await run()
    await page.reload()
    await row('WEATHER_TOKEN').getByText('Readable by the agent', { exact: true }).waitFor()
    await row('TOGETHER_API_KEY').getByText('Inserted by the model gateway').waitFor()
    await row('CITY').getByText('Readable by agents').waitFor()
    await look('secrets-hosts')
    await choose('WEATHER_TOKEN', 'New value or hosts')
    await dialog.getByLabel('Value').fill('wt-9876543210')
    await dialog.getByLabel('Hosts (optional)').fill('weather.example.com')
    await dialog.getByText('Make a new one at its provider first').waitFor()
    await look('secret-hosts')
    await inDialog('Save').click()
    await isGone()
    await row('WEATHER_TOKEN').getByText('Readable by the agent until a restart').waitFor()
    await run()
    await page.reload()
    await row('WEATHER_TOKEN').getByText('Inserted at the egress proxy').waitFor()
    await row('WEATHER_TOKEN').getByText('to weather.example.com · as bearer token').waitFor()
  })

  it('a form shows the hosts of a secret, and removes them with a new value only', async () => {
    await choose('NOTES_TOKEN', 'New value or hosts')
    assert.equal(await dialog.getByLabel('Hosts (optional)').inputValue(), 'notes.example.com')
    await dialog.getByText('Hosts change only together with the value').waitFor()
    await dialog.getByLabel('Hosts (optional)').fill('')
    await inDialog('Save').click()
    assert.ok(await dialog.isVisible())
    await dialog.getByLabel('Value').fill('nt-0123456789')
    await inDialog('Save').click()
    await isGone()
    await row('NOTES_TOKEN').getByText('Readable by the agent', { exact: true }).waitFor()
    const { hosts, via } = await stored('NOTES_TOKEN')
    assert.deepEqual([hosts, via], [null, null])
    // The model gateway inserts it, so it needs no hosts.
    await choose('TOGETHER_API_KEY', 'New value')
    assert.equal(await dialog.getByLabel('Hosts (optional)').count(), 0)
    await inDialog('Cancel').click()
  })

  it('an agent that runs as a process can read a secret with hosts, and the page says so', async () => {
    await sql('UPDATE agent SET proxy_key_hash = NULL WHERE id = $1', [ada.id])
    await page.reload()
    await row('CATALOGUE_KEY').getByText('Readable by the agent, which runs as a process').waitFor()
  })

  it('viewers see where secrets go, and change nothing', async () => {
    const { name } = await own.member('viewer')
    const on = await newPage()
    await signIn(on, name)
    await on.goto(`${url}/dashboard/agents/${ada.agentId}/secrets`)
    await on.getByText('to weather.example.com').waitFor()
    const changes = on.locator('main').getByRole('button', { name: /^(Add|Attach|Detach|More about [A-Z])/ })
    assert.equal(await changes.count(), 0)
    await on.context().close()
  })

  it('the browser reported no errors', () => assert.deepEqual(complaints, []))
})
