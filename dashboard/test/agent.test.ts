/**
 * The list of agents, their creation, and an agent's tasks, secrets, skills, channels, devices, domains, config and
 * settings, in a real browser: one agent with a real engine for all cases, and a workspace with many rows.
 */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, it } from 'node:test'
import { insertAgent } from '../../test/contract/agents/rows.ts'
import { manifest, files as templateFiles } from '../../test/contract/agents/templates.ts'
import { REPOSITORIES } from '../../test/contract/context.ts'
import { Device } from '../../test/contract/openclaw/device.ts'
import { insertAgentRow } from '../../test/support/agent-row.ts'
import { ensureEngines } from '../../test/support/engines.ts'
import { commitTo } from '../../test/support/git-repositories.ts'
import { cronInWords } from '../src/pages/agent/tasks/schedule.ts'
import { HOST_MS, HOSTILE, openDashboard } from './support.ts'

/** A start takes half a minute, and more on a busy machine. */
const UP_MS = 3 * HOST_MS
const MANY = 300

const context = await openDashboard()
const { url, env, own, page, complaints, workspace, sql, look, signIn, newPage, berth } = context
await ensureEngines()

const button = (name: string) => page.getByRole('button', { name, exact: true })
const dialog = page.getByRole('dialog')
const inDialog = (name: string) => dialog.getByRole('button', { name, exact: true })
const row = (text: string) => page.getByRole('listitem').filter({ hasText: text })
/** A task, not one of the runs that are listed in it. */
const task = (text: string) => page.locator('ul[aria-label="Tasks"] > li').filter({ hasText: text })
const isGone = () => dialog.waitFor({ state: 'detached' })
const ranNothing = async () => assert.equal(await page.evaluate('window.ran'), undefined)

let agentId = ''
const tab = async (name: string) => {
  await page.getByRole('navigation', { name: agentId }).getByRole('link', { name, exact: true }).click()
}
/** Chooses from the menu of a thing. */
const choose = async (thing: string, item: string) => {
  await page.getByRole('button', { name: `More about ${thing}`, exact: true }).click()
  await page.getByRole('menuitem', { name: item, exact: true }).click()
}
const confirmByName = async (name: string, word: string) => {
  assert.ok(await inDialog(word).isDisabled())
  await dialog.getByLabel('Type its name').fill(name)
  await inDialog(word).click()
}

describe('the words for a schedule', () => {
  for (const [expr, words] of [
    ['0 * * * *', 'every hour'],
    ['15 * * * *', 'every hour at :15'],
    ['*/10 * * * *', 'every 10 minutes'],
    ['0 */6 * * *', 'every 6 hours'],
    ['0 9 * * 1-5', 'at 09:00 on weekdays'],
    ['30 7 * * *', 'at 07:30 every day'],
    ['0 9,17 * * 0,6', 'at 09:00 and 17:00 on weekends'],
    ['0 16 * * 5', 'at 16:00 on Friday'],
    ['0 8 1 * *', 'at 08:00 on day 1 of each month'],
    ['0 9 * * 7', 'at 09:00 on Sunday'],
    ['0 9 1-7 * 1', undefined],
    ['0 9 * 2 *', undefined],
    ['0 9 * * 5-1', undefined],
  ] as const)
    it(`the cron expression ${expr} is ${words ?? 'shown as it is'}`, () =>
      assert.equal(cronInWords(expr), words))
})

describe('agents in the dashboard', () => {
  it('the list of agents without one leads to making one', async () => {
    await signIn()
    await page.goto(`${url}/dashboard/agents`)
    await page.getByText('No agents yet').waitFor()
    await look('agents-none')
    await page.getByRole('link', { name: 'New agent' }).click()
    await page.getByRole('heading', { name: 'New agent' }).waitFor()
  })
  it('a template of a repository is added, and asks for what it needs', async () => {
    const name = `${randomUUID()}.git`
    const wanted = { name: 'BOOKS_API_KEY', description: HOSTILE, guideUrl: 'https://example.com/key' }
    const tree = templateFiles(
      manifest({
        agent: { name: 'Librarian', description: HOSTILE, emoji: '📚' },
        secrets: [wanted, { name: 'SHELF', required: false }],
        template: { slug: `books-${randomUUID()}`, category: 'books', tags: ['books'] },
      }),
    )
    await commitTo(`${env[REPOSITORIES.dir]}`, name, tree)
    await button('Add a template from a repository').click()
    await dialog.getByLabel('Address of the repository').fill(`${env[REPOSITORIES.url]}/none.git`)
    await inDialog('Add').click()
    await dialog.getByRole('alert').waitFor()
    await dialog.getByLabel('Address of the repository').fill(`${env[REPOSITORIES.url]}/${name}`)
    await inDialog('Add').click()
    await isGone()
    await page.getByRole('radio', { name: /^Librarian/ }).waitFor()
    assert.ok(await page.getByRole('radio', { name: /^Librarian/ }).isChecked())
    await page.getByLabel('BOOKS_API_KEY', { exact: true }).waitFor()
    await page.getByLabel('SHELF (optional)').waitFor()
    await page.getByText(HOSTILE, { exact: true }).first().waitFor()
    await ranNothing()
    await look('agents-new')
  })
  it('an agent is made of a template, and its start is seen step by step', async () => {
    await page.getByText('Assistant', { exact: true }).click()
    await page.getByLabel('Name', { exact: true }).fill('Archivist')
    await page.getByLabel('Emoji').fill('📚')
    await button('Create').click()
    const steps = page.getByRole('list', { name: 'Its start' })
    await steps.getByRole('listitem').filter({ hasText: 'under way' }).first().waitFor()
    await look('agents-start')
    await page.getByRole('link', { name: 'Talk to it' }).waitFor({ timeout: UP_MS })
    assert.equal(await steps.getByRole('listitem').filter({ hasText: 'done' }).count(), 5)
    agentId = new URL(page.url()).searchParams.get('made') ?? ''
    assert.match(agentId, /^x[a-z0-9]{7}$/)
  })
  it('tasks of the template are there, and another one is made, run and seen to have run', async () => {
    await page.goto(`${url}/dashboard/agents/${agentId}/tasks`)
    await task('Morning brief').getByText('at 07:00 on weekdays').waitFor()
    await button('New task').click()
    await dialog.getByLabel('Name').fill(HOSTILE)
    await dialog.getByLabel('What to tell the agent').fill(`say ${HOSTILE}`)
    await dialog.getByLabel('When').selectOption('At an interval')
    await dialog.getByText('Runs every hour.').waitFor()
    await look('tasks-new')
    await inDialog('New task').click()
    await isGone()
    const made = task(`say ${HOSTILE}`)
    await made.getByText(/every hour · next in/).waitFor()
    await made.getByRole('button', { name: 'Run now' }).click()
    await made.getByRole('button', { name: /^done/ }).click({ timeout: 2 * HOST_MS })
    await made.getByRole('list', { name: 'Last runs' }).getByText(/pong/).waitFor()
    await ranNothing()
    await look('tasks')
  })
  it('a task is changed, switched off, and deleted by its name', async () => {
    await choose('Weekly review', 'Change')
    await dialog.getByLabel('Time', { exact: true }).fill('18:30')
    await dialog.getByRole('button', { name: 'Monday' }).click()
    await inDialog('Save').click()
    await isGone()
    await task('Weekly review').getByText('at 18:30 on Monday and Friday').waitFor()
    const made = task(`say ${HOSTILE}`)
    await made.getByRole('switch').click()
    await made.getByText(/· off/).waitFor()
    await choose(HOSTILE, 'Delete')
    await confirmByName(HOSTILE, 'Delete')
    await made.waitFor({ state: 'detached' })
  })
  it('a secret is added and attached, and one that is in its way is refused with the reason', async () => {
    await tab('Secrets')
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
    await page.getByRole('list', { name: 'Others of the workspace' }).getByText('CODEX_API_KEY').waitFor()
    assert.ok(!(await page.content()).includes('sk-OPENAI_API_KEY'))
    await look('secrets')
  })
  it('a secret gets a new value, is detached, and is deleted once no agent has it', async () => {
    await choose('OPENAI_API_KEY', 'New value')
    await dialog.getByLabel('Value').fill('sk-another')
    await inDialog('New value').click()
    await isGone()
    await choose('OPENAI_API_KEY', 'Delete')
    await confirmByName('OPENAI_API_KEY', 'Delete')
    await dialog
      .getByRole('alert')
      .getByText(/Archivist|attached/)
      .waitFor()
    await inDialog('Cancel').click()
    await row('OPENAI_API_KEY').getByRole('button', { name: 'Detach' }).click()
    await page.getByText('None is attached to this agent yet').waitFor()
    await choose('OPENAI_API_KEY', 'Delete')
    await confirmByName('OPENAI_API_KEY', 'Delete')
    await row('OPENAI_API_KEY').waitFor({ state: 'detached' })
  })
  it('a skill of the hub is attached, seen with its version, and detached', async () => {
    await tab('Skills')
    await page.getByText('No skills yet').waitFor()
    await button('Hub').first().click()
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
    await row('journal').getByRole('button', { name: 'Detach' }).click()
    await inDialog('Detach').click()
    await page.getByText('No skills yet').waitFor()
  })
  it('a subdomain is there at once, and a domain of one’s own shows its records and what the check said', async () => {
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
    await dialog.getByLabel('Kind').selectOption('A domain of your own')
    await dialog.getByLabel('Name').fill(domain)
    await dialog.getByLabel('Only with the gateway token').check()
    await inDialog('Add a domain').click()
    await isGone()
    const pending = row(domain).first()
    await pending.getByText('to be proven').waitFor()
    await pending.getByText('TXT').waitFor()
    assert.equal(await pending.getByRole('button', { name: 'Copy' }).count(), 4)
    await pending.getByRole('button', { name: 'Check the record' }).click()
    // Where the tests run, DNS may not be asked at all.
    await pending.getByText(/does not show the TXT record|DNS did not answer/).waitFor()
    await look('domains')
    await choose(domain, 'Delete')
    await confirmByName(domain, 'Delete')
    await pending.waitFor({ state: 'detached' })
  })
  it('a path of the agent’s host is added, changed and removed', async () => {
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
    await dialog.getByLabel('Port of the agent').fill('4180')
    await inDialog('Save').click()
    await row('/shop').getByText('leads to port 4180').waitFor()
    await row('/shop').getByRole('button', { name: 'Remove' }).click()
    await page.getByText('No paths yet').waitFor()
  })
  it('an agent is given another name and description, with markup shown as text', async () => {
    await tab('Settings')
    await page.getByLabel('Name', { exact: true }).fill('Keeper of books')
    await page.getByLabel('What it is for').fill(HOSTILE)
    await button('Save').click()
    await page.getByRole('heading', { level: 1, name: /Keeper of books/ }).waitFor()
    await ranNothing()
  })
  it('its tokens are shown when asked for, and its clone line has the token', async () => {
    const { body } = await own.api.get(`/v0/agents/${agentId}/gateway-token`)
    await page.getByText(/^git clone/).waitFor()
    assert.ok(!(await page.innerText('main')).includes(body.token))
    await button('Reveal').click()
    await page.getByText(new RegExp(`^git clone .*:${body.token}@.*/${agentId}/git`)).waitFor()
    await button('Hide').click()
    await button('Make one').click()
    await page.getByText(/^eyJ/).waitFor()
    await look('settings')
  })
  it('a device that asks is approved, and is paired then', async () => {
    const { body } = await own.api.get(`/v0/agents/${agentId}/gateway-token`)
    const device = new Device()
    await tab('Devices')
    // Attaching the credential has restarted it.
    await page.getByText('None waits').waitFor({ timeout: UP_MS })
    const host = `${agentId}.agents.localhost:${new URL(url).port}`
    assert.equal((await device.connect({ url, host, token: body.token })).error?.code, 'NOT_PAIRED')
    await page.reload()
    await page.getByRole('list', { name: 'Waiting' }).getByText('linux').waitFor()
    await look('devices')
    await button('Approve').click()
    await page.getByRole('list', { name: 'Paired' }).getByText('operator.write').waitFor()
    await page.getByText('None waits').waitFor()
  })
  it('a setting is changed in the form, and the engine takes it', async () => {
    await tab('Config')
    assert.equal(await page.getByLabel('Model', { exact: true }).inputValue(), 'berth/default')
    await page.getByLabel('Your time zone').fill('Europe/Berlin')
    await page.getByText('Not saved yet').waitFor()
    await look('config')
    await button('Save').click()
    await page.getByText('Saved.').waitFor({ timeout: UP_MS })
    const { body } = await own.api.get(`/v0/agents/${agentId}/config`)
    assert.equal(JSON.parse(body.config).agents.defaults.userTimezone, 'Europe/Berlin')
  })
  it('the config is written as JSON, unless the engine refuses it or a key is the operator’s', async () => {
    await button('JSON').click()
    const editor = page.getByRole('textbox', { name: 'The config as JSON' })
    const type = async (text: string) => {
      await editor.click()
      await page.keyboard.press('ControlOrMeta+a')
      await page.keyboard.insertText(text)
    }
    await editor.getByText('Europe/Berlin').waitFor()
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
    await page.getByText(/The engine refuses it/).waitFor()
    await ranNothing()
    await button('Discard').click()
    await editor.getByText('Europe/Berlin').waitFor()
  })
  it('a channel is connected with its token, seen without it, and removed', async () => {
    await tab('Channels')
    await row('Discord').getByRole('button', { name: 'Connect' }).click()
    await dialog.getByText('Make an application at').waitFor()
    await look('channels-new')
    await dialog.getByLabel('Bot token').fill(`discord-${randomUUID()}`)
    await dialog.getByLabel('Who may write to it').selectOption('Only the senders listed')
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
  it('a page of the engine says that it does not answer, and how to start it', async () => {
    const { agentId: still } = await insertAgent(context, own, 'Still')
    await page.goto(`${url}/dashboard/agents/${still}/tasks`)
    await page.getByText('The engine of this agent does not answer').waitFor()
    await button('Start it again').waitFor()
    await look('engine-away')
  })
  it('on a phone the tab of the page that is open is in view', async () => {
    const width = 390
    await page.setViewportSize({ width, height: 780 })
    await page.goto(page.url().replace(/tasks$/, 'config'))
    await page.getByText('The engine of this agent does not answer').waitFor()
    const open = await page.getByRole('link', { name: 'Config', exact: true }).boundingBox()
    assert.ok(open && open.x > 0 && open.x + open.width < width, JSON.stringify(open))
    await page.setViewportSize({ width: 1280, height: 800 })
  })
  it('three agents are seen with their states, and searched by what is said of them', async () => {
    await insertAgentRow(
      { query: sql },
      {
        workspaceId: own.id,
        name: HOSTILE,
        status: 'not_running',
        statusReason: HOSTILE,
        purgedAt: new Date(),
      },
    )
    await page.goto(`${url}/dashboard/agents`)
    // What a real agent uses is there within seconds of its start.
    await row('Keeper of books')
      .getByText(/^\d+(\.\d)? MB$/)
      .filter({ visible: true })
      .waitFor()
    await page.getByText(HOSTILE, { exact: true }).first().waitFor()
    await ranNothing()
    await look('agents')
    await page.getByRole('searchbox').fill('onerror')
    await row('Still').waitFor({ state: 'detached' })
    assert.equal(await page.getByRole('list', { name: 'Agents' }).getByRole('listitem').count(), 2)
  })
  it('an agent is deleted by its name', async () => {
    await page.goto(`${url}/dashboard/agents/${agentId}/settings`)
    await button('Delete this agent').click()
    await confirmByName('Keeper of books', 'Delete')
    await page.getByRole('heading', { level: 1, name: 'Agents' }).waitFor()
    await row('Still').waitFor()
    assert.equal(await row('Keeper of books').count(), 0)
  })
  it(`a list of ${MANY} agents is searched, filtered and sorted, and makes only the rows that are seen`, async () => {
    const many = await workspace()
    await sql(
      `INSERT INTO agent (id, agent_id, workspace_id, user_id, name, description, engine, engine_version, gateway_token,
         status, purged_at, created_at)
       SELECT gen_random_uuid(), 'x' || substr(md5($1 || n::text), 1, 7), $1::uuid, gen_random_uuid(), 'Agent ' || n,
         CASE WHEN n = 99 THEN 'The zebra' ELSE 'Number ' || n END, 'openclaw', '2026.9.6', gen_random_uuid()::text,
         CASE WHEN n % 3 = 0 THEN 'not_running' ELSE 'running' END, now(), now() - n * interval '1 minute'
       FROM generate_series(1, $2::int) AS n`,
      [many.id, MANY],
    )
    await sql(
      `INSERT INTO agent_usage (agent_id, at, memory_bytes, memory_limit_bytes)
       SELECT id, now() + interval '1 hour', 3000000 * substr(name, 7)::int, 1000000000 FROM agent
       WHERE workspace_id = $1 AND status = 'running'`,
      [many.id],
    )
    const other = await newPage()
    const address = (await berth('login-link', '-w', many.name)).trim()
    await other.goto(address.replace(new URL(address).origin, url))
    await other.getByRole('button', { name: 'Sign in' }).click()
    await other.getByRole('heading', { name: 'Overview' }).waitFor()
    await other.goto(`${url}/dashboard/agents?sort=oldest`)
    const list = other.getByRole('list', { name: 'Agents' })
    const rows = list.getByRole('listitem')
    await rows
      .filter({ hasText: `Agent ${MANY}` })
      .first()
      .waitFor()
    assert.ok((await rows.count()) < 60, `${await rows.count()} rows`)
    assert.equal(await rows.first().getAttribute('aria-setsize'), String(MANY))
    await other.evaluate('window.scrollTo(0, document.body.scrollHeight)')
    await rows.filter({ hasText: /^AAgent 1Number 1/ }).waitFor()
    await other.getByLabel('Order').selectOption('Most memory first')
    await rows.first().getByText('897 MB / 1 GB').filter({ visible: true }).waitFor()
    await rows.first().getByText('Agent 299').waitFor()
    await other.getByRole('button', { name: /^stopped/ }).click()
    await other.waitForURL(/state=not_running/)
    await other.getByRole('searchbox').fill('zebra agent')
    await rows.filter({ hasNotText: 'Agent 99' }).first().waitFor({ state: 'detached' })
    await rows.filter({ hasText: 'Agent 99' }).waitFor()
    await other.reload()
    await rows.filter({ hasText: 'Agent 99' }).waitFor()
    assert.equal(await rows.count(), 1)
    await other.getByRole('searchbox').fill('nobody')
    await other.getByText('No agent is like that.').waitFor()
    await other.close()
  })
  it('the browser complained of nothing', () => assert.deepEqual(complaints, []))
})
