/**
 * An agent's secrets, skills, channels, devices, domains, config and settings in a real browser, with one real engine
 * for all cases. Also checks which of these a viewer sees.
 */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, it } from 'node:test'
import { insertAgent } from '../../../test/contract/agents/rows.ts'
import { newAgent } from '../../../test/contract/openclaw/context.ts'
import { Device } from '../../../test/contract/openclaw/device.ts'
import { until } from '../../../test/support/processes.ts'
import { actionsOn, HOST_MS, HOSTILE, openDashboard } from '../support.ts'

/** A start takes half a minute, and longer on a busy machine. */
const UP_MS = 3 * HOST_MS

const context = await openDashboard()
const { url, own, page, complaints, look, signIn, newPage } = context

const { button, choose, dialog, inDialog, isGone, ranNothing, row, insist } = actionsOn(page)
const { agentId } = await newAgent(own.api, { name: 'Archivist' })
const tab = async (name: string) => {
  await page.getByRole('navigation', { name: agentId }).getByRole('link', { name, exact: true }).click()
}
await signIn()

describe('an agent in the dashboard', () => {
  it('viewers see no action that the API refuses, on any page of files and agents', async () => {
    const { name } = await own.member('viewer')
    const on = await newPage()
    await on.goto(`${url}/login#token=${await own.loginToken(name)}`)
    await on.getByRole('button', { name: 'Sign in' }).click()
    await on.getByRole('heading', { name: 'Overview' }).waitFor()
    const group = await own.api.post('/v3/groups/public', { name: 'Spring' })
    assert.equal(group.status, 200)
    const files: Record<string, string> = {}
    for (const network of ['public', 'private']) {
      const form = new FormData()
      form.set('network', network)
      form.set('file', new Blob([`for a viewer, ${network}`], { type: 'text/plain' }), `${network}.txt`)
      const headers = { authorization: `Bearer ${own.api.key}` }
      const answer = await fetch(`${url}/v3/files`, { method: 'POST', body: form, headers })
      files[network] = ((await answer.json()) as { data: { id: string } }).data.id
    }
    const gateway = (await own.api.get('/v3/gateways')).body.data.rows[0]
    const agent = `/agents/${agentId}`
    const found: string[] = []
    for (const [path, shown] of [
      ['', /running/],
      ['/files', 'public.txt'],
      ['/files/pins', 'No pins in progress'],
      ['/files/groups', 'Spring'],
      ['/files/gateways', gateway.domain],
      [`/files/gateways/${gateway.id}`, 'Anyone can read public files here'],
      [`/files/public/${files.public}`, 'No metadata yet.'],
      [`/files/private/${files.private}`, 'Anyone with a link can read the file'],
      ['/agents', /running/],
      ['/spending', 'No limit is set.'],
      ['/agents/new', 'Viewers can see everything'],
      [agent, 'Viewers can see everything'],
      [`${agent}/console`, 'Viewers can see everything'],
      [`${agent}/files`, 'workspace'],
      [`${agent}/snapshots`, /No snapshots yet|Newest/],
      [`${agent}/tasks`, 'No tasks yet'],
      [`${agent}/skills`, 'No skills yet'],
      [`${agent}/models`, 'No limit is set.'],
      [`${agent}/egress`, 'Hosts of the last 7 days'],
      [`${agent}/secrets`, /CODEX_API_KEY|no secrets yet/],
      [`${agent}/channels`, 'Discord'],
      [`${agent}/devices`, /operator.write|No pending requests/],
      [`${agent}/domains`, 'No paths yet'],
      [`${agent}/config`, 'Your time zone'],
      [`${agent}/logs`, 'INFO'],
      [`${agent}/usage`, /Memory|Not measured/],
      [`${agent}/settings`, 'gateway'],
    ] as const) {
      await on.goto(`${url}/dashboard${path}`)
      const main = on.locator('main')
      const there = main.getByText(shown).filter({ visible: true }).first()
      await there
        .waitFor({ timeout: HOST_MS })
        .catch(async () => assert.fail(`${path}: ${await main.innerText()}`))
      assert.equal(
        await main.getByRole('alert').count(),
        0,
        `${path}: ${await main.getByRole('alert').allTextContents()}`,
      )
      const offered = await main
        .getByRole('button', { disabled: false })
        .evaluateAll((buttons) =>
          buttons.map((one) => one.getAttribute('aria-label') ?? one.textContent ?? ''),
        )
      const other = await main
        .locator(
          'input[type=file], [role=switch]:enabled, form input:enabled, form textarea:enabled, form select:enabled, a[href$="/agents/new"]',
        )
        .count()
      assert.equal(other, 0, path)
      found.push(...offered.map((button) => `${path}: ${button}`))
    }
    // Buttons that change nothing: they switch views, sort, copy, download or dismiss a hint.
    const harmless =
      /: (Copy( .+)?|Not now|Download|Form|All settings|JSON|Attached|Library|Hub|Public|Private|Added [↓↑]|(all|running|starting|stopped|failed)( \d+)?|This month|Last month|By (model|agent)|Money|Tokens|[78930]+ days|▸.+|.+ B)$/
    assert.deepEqual(
      found.filter((button) => !harmless.test(button)),
      [],
    )
    // Viewers see no hints to create something.
    for (const [path, empty, hint] of [
      ['/operate/keys', 'No API keys yet', 'Create one'],
      [`${agent}/skills`, 'No skills yet', 'Attach one'],
    ] as const) {
      await on.goto(`${url}/dashboard${path}`)
      await on.locator('main').getByText(empty).waitFor()
      assert.equal(await on.locator('main').getByText(hint).count(), 0, path)
    }
    await on.context().close()
  })
  it('a hub skill is attached, shown with its version, and detached', async () => {
    await page.goto(`${url}/dashboard/agents/${agentId}/skills`)
    await page.getByText('No skills yet').waitFor()
    await button('Hub').first().click()
    await page.reload()
    await page.getByRole('searchbox', { name: 'Search skills' }).fill('journal')
    await row('@berth/handover').waitFor({ state: 'detached' })
    await look('skills-hub')
    await row('@berth/journal').getByRole('button', { name: 'Attach' }).click()
    await row('@berth/journal').getByRole('button', { name: 'Attached' }).waitFor()
    await button('Library').click()
    await row('journal').getByRole('button', { name: 'Attached' }).waitFor()
    await page.getByRole('group', { name: 'Skills' }).getByRole('button', { name: 'Attached' }).click()
    await row('journal').getByText('1.0.0').waitFor()
    await look('skills')
    await button('Hub').first().click()
    assert.ok(await row('@berth/journal').getByRole('button', { name: 'Installed' }).isDisabled())
    await page.getByRole('group', { name: 'Skills' }).getByRole('button', { name: 'Attached' }).click()
    await row('journal').getByRole('button', { name: 'Detach' }).click()
    await inDialog('Detach').click()
    await page.getByText('No skills yet').waitFor()
  })
  it('a subdomain works at once, and a custom domain shows its records and check result', async () => {
    await tab('Domains')
    const name = `page-${agentId}`
    await button('Add a domain').click()
    await dialog.getByLabel('Name').fill('no_such_name')
    await inDialog('Add a domain').click()
    await dialog.getByRole('alert').waitFor()
    await dialog.getByLabel('Name').fill(name)
    await inDialog('Add a domain').click()
    await isGone()
    await row(name).getByText('ready').waitFor()
    await row(name).getByRole('link').waitFor()
    const domain = `shop-${agentId}.books-of-the-world.com`
    await button('Add a domain').click()
    await dialog.getByLabel('Kind').selectOption('Your own domain')
    await dialog.getByLabel('Name').fill(domain)
    await dialog.getByLabel('Require the gateway token').check()
    await inDialog('Add a domain').click()
    await isGone()
    const pending = row(domain).first()
    await pending.getByText('not verified yet').waitFor()
    await pending.getByText('TXT').waitFor()
    assert.equal(await pending.getByRole('button', { name: 'Copy' }).count(), 4)
    await pending.getByRole('button', { name: 'Check the record' }).click()
    // The test machine may have no DNS.
    await pending.getByText(/does not show the TXT record|DNS did not answer/).waitFor()
    await look('domains')
    await choose(domain, 'Delete')
    await inDialog('Delete').click()
    await pending.waitFor({ state: 'detached' })
  })
  it('a path on the agent’s host is added, changed and removed', async () => {
    await button('Add a path').click()
    await dialog.getByLabel('Path').fill('/v0')
    await inDialog('Save').click()
    await dialog
      .getByRole('alert')
      .getByText(/reserved/)
      .waitFor()
    await dialog.getByLabel('Path').fill('/shop')
    await inDialog('Save').click()
    await isGone()
    await row('/shop').getByRole('button', { name: 'Change' }).click()
    await dialog.getByLabel('Agent port').fill('4180')
    await inDialog('Save').click()
    await row('/shop').getByText('leads to port 4180').waitFor()
    await row('/shop').getByRole('button', { name: 'Remove' }).click()
    await page.getByText('No paths yet').waitFor()
  })
  it('an agent’s name and description change, with markup shown as text', async () => {
    await tab('Settings')
    await page.getByLabel('Name', { exact: true }).fill('Keeper of books')
    await page.getByLabel('What it is for').fill(HOSTILE)
    await button('Save').click()
    await page.getByRole('heading', { level: 1, name: /Keeper of books/ }).waitFor()
    await ranNothing()
  })
  it('other agents find an agent once a protocol is chosen, at the address shown', async () => {
    const card = `${url}/v0/agents/${agentId}/.well-known/agent-card.json`
    assert.equal((await fetch(card)).status, 404)
    await page.getByRole('checkbox', { name: 'A2A' }).check()
    await page.getByText(card).waitFor()
    assert.equal((await fetch(card)).status, 200)
    await page.getByRole('checkbox', { name: 'MCP' }).check()
    await page.getByText(`${url}/v0/agents/${agentId}/mcp`).waitFor()
    await page.getByRole('checkbox', { name: 'A2A' }).uncheck()
    await page.getByText(card).waitFor({ state: 'detached' })
    assert.deepEqual((await own.api.get(`/v0/agents/${agentId}`)).body.agent.protocols, ['mcp'])
  })
  it('an agent’s tokens are revealed on request, and its clone line contains the token', async () => {
    const { body } = await own.api.get(`/v0/agents/${agentId}/gateway-token`)
    await page.getByText(/^git clone/).waitFor()
    assert.ok(!(await page.innerText('main')).includes(body.token))
    await button('Reveal').click()
    await page.getByText(new RegExp(`^git clone .*:${body.token}@.*/${agentId}/git`)).waitFor()
    await button('Hide').click()
    await button('Create a token').click()
    await page.getByText(/^eyJ/).waitFor()
    await look('settings')
  })
  it('a device is paired once its request is approved', async () => {
    const { body } = await own.api.get(`/v0/agents/${agentId}/gateway-token`)
    const device = new Device()
    await tab('Devices')
    await page.getByText('No pending requests').waitFor()
    const host = `${agentId}.agents.localhost:${new URL(url).port}`
    // A busy engine returns 503 instead of a WebSocket.
    const answer = await until('it is answered', () => device.connect({ url, host, token: body.token }))
    assert.equal(answer.error?.code, 'NOT_PAIRED')
    await page.reload()
    await page.getByRole('list', { name: 'Waiting' }).getByText('linux').waitFor()
    await look('devices')
    await insist(() => button('Approve').click())
    await page.getByRole('list', { name: 'Paired' }).getByText('operator.write').waitFor()
    await page.getByText('No pending requests').waitFor()
  })
  it('the engine accepts a setting changed in the form', async () => {
    await tab('Config')
    assert.equal(await page.getByLabel('Model', { exact: true }).inputValue(), 'berth/default')
    await page.getByLabel('Your time zone').fill('Europe/Berlin')
    await page.getByText('Not saved yet').waitFor()
    await look('config')
    await tab('Logs')
    await dialog.getByText('Leave without saving?').waitFor()
    await inDialog('Cancel').click()
    assert.equal(await page.getByLabel('Your time zone').inputValue(), 'Europe/Berlin')
    await button('Save').click()
    await page.getByText('Saved.').waitFor({ timeout: UP_MS })
    const { body } = await own.api.get(`/v0/agents/${agentId}/config`)
    assert.equal(JSON.parse(body.config).agents.defaults.userTimezone, 'Europe/Berlin')
  })
  it('any setting in the engine’s schema can be found and changed, except the operator’s', async () => {
    const place = (key: string) => page.locator('button', { has: page.getByText(key, { exact: true }) })
    await button('All settings').click()
    await place('gateway').click()
    await page.getByText('set by the operator').first().waitFor()
    await page.getByRole('navigation', { name: 'Place in the config' }).getByText('All settings').click()
    await place('agents').click()
    await place('defaults').click()
    await button('Change agents.defaults.thinkingDefault').click()
    await page.getByLabel('Value of agents.defaults.thinkingDefault').selectOption('medium')
    await page.getByText('Not saved yet').waitFor()
    await look('config-all')
    await button('Save').click()
    await page.getByText('Saved.').waitFor({ timeout: UP_MS })
    const { body } = await own.api.get(`/v0/agents/${agentId}/config`)
    assert.equal(JSON.parse(body.config).agents.defaults.thinkingDefault, 'medium')
  })
  it('the config is saved as JSON unless the engine refuses it or a key is the operator’s', async () => {
    await button('JSON').click()
    const editor = page.getByRole('textbox', { name: 'The config as JSON' })
    const type = async (text: string) => {
      await editor.click()
      await page.keyboard.press('ControlOrMeta+a')
      await page.keyboard.insertText(text)
    }
    // The editor renders only the lines in view.
    const start = editor.getByText('"providers"')
    await start.waitFor()
    await page.getByText(/keys are set by the operator/).click()
    await page.getByText('gateway.auth.token', { exact: true }).waitFor()
    await look('config-json')
    await type('{ "broken"')
    await page.getByRole('alert').waitFor()
    assert.ok(await button('Save').isDisabled())
    await type(JSON.stringify({ gateway: { mode: 'remote' } }))
    await button('Save').click()
    await page
      .getByRole('alert')
      .getByText(/gateway.mode: is set by the operator/)
      .waitFor()
    await type(JSON.stringify({ [HOSTILE]: HOSTILE }))
    await button('Check').click()
    await page.getByText(/The engine rejects it/).waitFor()
    await ranNothing()
    await button('Discard').click()
    await start.waitFor()
  })
  it('a channel is connected with a token, shown without it, and removed', async () => {
    await tab('Channels')
    await row('Discord').getByRole('button', { name: 'Connect' }).click()
    await dialog.getByText('Create an application').waitFor()
    await look('channels-new')
    await dialog.getByLabel('Bot token').fill(`discord-${randomUUID()}`)
    await dialog.getByLabel('Who may write to it').selectOption('Only listed senders')
    await dialog.getByLabel('Senders').fill(HOSTILE)
    await inDialog('Connect').click()
    await isGone()
    await row('Discord').getByText('connected', { exact: true }).waitFor()
    await row('Discord').getByText('1 sender').waitFor()
    await ranNothing()
    await look('channels')
    await choose('Discord', 'Remove')
    await inDialog('Remove').click()
    await row('Discord').getByText('not connected').waitFor()
  })
  // From here on the engine is unreachable at times: adding or removing a secret restarts it.
  it('a secret is added and attached, and a conflicting secret is refused with the reason', async () => {
    await page.goto(`${url}/dashboard/agents/${agentId}/secrets`)
    await page.getByText('The workspace has no secrets yet').waitFor()
    for (const name of ['OPENAI_API_KEY', 'CODEX_API_KEY']) {
      await button('Add a secret').click()
      await dialog.getByLabel('Name').fill(name)
      await dialog.getByLabel('Value').fill(`sk-${name}`)
      await inDialog('Add a secret').click()
      if (name === 'OPENAI_API_KEY') await isGone()
    }
    await dialog
      .getByRole('alert')
      .getByText(/OPENAI_API_KEY.*CODEX_API_KEY|CODEX_API_KEY.*OPENAI_API_KEY/)
      .waitFor()
    await dialog.getByText(/Detach the other one first/).waitFor()
    await inDialog('Cancel').click()
    await page.getByRole('list', { name: 'Attached to this agent' }).getByText('OPENAI_API_KEY').waitFor()
    await page.getByRole('list', { name: 'Other workspace secrets' }).getByText('CODEX_API_KEY').waitFor()
    assert.ok(!(await page.content()).includes('sk-OPENAI_API_KEY'))
    await look('secrets')
  })
  it('a secret’s value changes, and the secret is detached and deleted once no agent uses it', async () => {
    await choose('OPENAI_API_KEY', 'New value')
    await dialog.getByLabel('Value').fill('sk-another')
    await inDialog('Save').click()
    await isGone()
    await choose('OPENAI_API_KEY', 'Delete')
    await inDialog('Delete').click()
    await dialog
      .getByRole('alert')
      .getByText(/Keeper of books|attached/)
      .waitFor()
    await inDialog('Cancel').click()
    await row('OPENAI_API_KEY').getByRole('button', { name: 'Detach' }).click()
    await page.getByText('No secrets are attached to this agent yet').waitFor()
    await choose('OPENAI_API_KEY', 'Delete')
    await inDialog('Delete').click()
    await row('OPENAI_API_KEY').waitFor({ state: 'detached' })
  })
  it('a page that needs the engine explains that it does not respond, and offers a restart', async () => {
    const { agentId: still } = await insertAgent(context, own, 'Still')
    await page.goto(`${url}/dashboard/agents/${still}/tasks`)
    await page.getByText('This agent’s engine is not responding').waitFor()
    await button('Restart it').waitFor()
    await look('engine-away')
    await page.getByRole('link', { name: 'Chat', exact: true }).click()
    await page.getByText('This agent’s engine is not responding').waitFor()
  })
  it('the open page’s tab is in view on a phone', async () => {
    const width = 390
    await page.setViewportSize({ width, height: 780 })
    await page.goto(`${page.url()}/config`)
    await page.getByText('This agent’s engine is not responding').waitFor()
    const open = await page.getByRole('link', { name: 'Config', exact: true }).boundingBox()
    assert.ok(open && open.x > 0 && open.x + open.width < width, JSON.stringify(open))
    await page.setViewportSize({ width: 1280, height: 800 })
  })
  it('the browser reported no errors', () => assert.deepEqual(complaints, []))
})
