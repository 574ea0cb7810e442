/** The list of agents, their creation with the tasks of a template, and their deletion, in a real browser. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, describe, it } from 'node:test'
import { LOCAL_SERVERS } from '../../src/lib/net/local-models.ts'
import { WALLS, type Wall } from '../../src/sandboxes/walls.ts'
import { insertAgent } from '../../test/contract/agents/rows.ts'
import { manifest, files as templateFiles } from '../../test/contract/agents/templates.ts'
import { inlineCid, REPOSITORIES } from '../../test/contract/context.ts'
import { useStandIn as takeStandIn } from '../../test/contract/openclaw/context.ts'
import { STAND_IN } from '../../test/integration/agents/stand-in.ts'
import { insertAgentRow } from '../../test/support/agent-row.ts'
import { ensureEngines } from '../../test/support/engines.ts'
import { commitTo } from '../../test/support/git-repositories.ts'
import { MODEL, startModel } from '../../test/support/model.ts'
import { cronInWords } from '../src/pages/agent/tasks/schedule.ts'
import { actionsOn, HOST_MS, HOSTILE, openDashboard, withoutModel } from './support.ts'

/** A start takes half a minute, and longer on a busy machine. */
const UP_MS = 3 * HOST_MS
const MANY = 300

const context = await openDashboard()
const { url, env, own, page, complaints, workspace, sql, look, signIn, newPage } = context
await ensureEngines()
await takeStandIn(context, own, { version: STAND_IN.slow, name: 'Sketch' })

const { button, choose, confirmByName, dialog, inDialog, isGone, ranNothing, row, insist } = actionsOn(page)
/** A task, not one of the runs listed in it. */
const task = (text: string) => page.locator('ul[aria-label="Tasks"] > li').filter({ hasText: text })

let agentId = ''
/** A model server at one of the addresses that Berth checks. */
const { local, serverName } = await startLocalModel()
after(() => local.stop())

async function startLocalModel() {
  for (const { name, baseUrl } of Object.values(LOCAL_SERVERS)) {
    const port = Number(new URL(baseUrl).port)
    const local = await startModel({ port, isOpen: true }).catch(() => undefined)
    if (local) return { local, serverName: name }
  }
  throw new Error('all ports of local servers are taken here')
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
    it(`the cron expression ${expr} is ${words ?? 'shown unchanged'}`, () =>
      assert.equal(cronInWords(expr), words))
})
describe('agents in the dashboard', () => {
  it('the agent pages show how agents are isolated, and refuse new agents without isolation', async () => {
    await signIn()
    const tell = (status: string, wall: Wall) =>
      page.route('**/readyz', (route) =>
        route.fulfill({ json: { status, parts: { processes: { status, detail: WALLS[wall] } } } }),
      )
    await tell('ok', 'namespaces')
    await page.goto(`${url}/dashboard/agents`)
    await page.getByText('walled off by namespaces').waitFor()
    await tell('degraded', 'none')
    for (const path of ['agents', 'agents/new']) {
      await page.goto(`${url}/dashboard/${path}`)
      const notice = page.getByRole('alert').filter({ hasText: 'no agent can be created' })
      await notice.getByText('BERTH_AGENTS_READ_KEYS=accept').waitFor()
    }
    await look('agents-not-walled')
    await page.unrouteAll({ behavior: 'ignoreErrors' })
  })
  it('an empty list of agents leads to creating one', async () => {
    await signIn()
    await page.goto(`${url}/dashboard/agents`)
    await page.getByText('No agents yet').waitFor()
    await look('agents-none')
    await page.getByRole('link', { name: 'New agent' }).click()
    await page.getByRole('heading', { name: 'New agent' }).waitFor()
  })
  it('a template from a repository is added, and asks for the secrets that it needs', async () => {
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
    await dialog.getByLabel('Repository URL').fill(`${env[REPOSITORIES.url]}/none.git`)
    await inDialog('Add').click()
    await dialog.getByRole('alert').waitFor()
    await dialog.getByLabel('Repository URL').fill(`${env[REPOSITORIES.url]}/${name}`)
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
  it('an agent is created from a template, and its start is shown step by step', async () => {
    const putBack = await withoutModel(page)
    await page.reload()
    await page.getByText('Assistant', { exact: true }).click()
    await page.getByLabel('Name', { exact: true }).fill('Archivist')
    // The first local server found is preselected.
    const chosen = page.getByRole('radio', { name: `${serverName} on this machine` })
    await page.waitForFunction((radio) => radio?.checked, await chosen.elementHandle())
    await page.getByRole('combobox', { name: 'Model', exact: true }).selectOption(MODEL)
    await look('agents-new-local')
    await page.getByLabel('Emoji').fill('📚')
    await page.getByRole('checkbox', { name: 'MCP' }).check()
    await button('Create').click()
    const steps = page.getByRole('list', { name: 'Startup' })
    await steps.getByRole('listitem').filter({ hasText: 'in progress' }).first().waitFor()
    await putBack()
    await look('agents-start')
    await page.getByRole('link', { name: 'Talk to it' }).waitFor({ timeout: UP_MS })
    assert.equal(await steps.getByRole('listitem').filter({ hasText: 'done' }).count(), 5)
    agentId = new URL(page.url()).searchParams.get('made') ?? ''
    assert.match(agentId, /^x[a-z0-9]{7}$/)
    const { agent } = (await own.api.get(`/v0/agents/${agentId}`)).body
    assert.deepEqual([agent.emoji, agent.protocols], ['📚', ['mcp']])
    await page.getByRole('link', { name: 'Overview' }).click()
    await page.getByText('1 running').waitFor()
    await page.getByRole('link', { name: 'Start a new agent' }).first().waitFor()
    await look('overview')
  })
  it('the template’s tasks exist, and a new task is created, run and shown with its run', async () => {
    await page.goto(`${url}/dashboard/agents/${agentId}/tasks`)
    await task('Morning brief').getByText('at 07:00 on weekdays').waitFor()
    await button('New task').click()
    await dialog.getByLabel('Name').fill(HOSTILE)
    await dialog.getByLabel('Message to the agent').fill(`say ${HOSTILE}`)
    await dialog.getByLabel('When').selectOption('At an interval')
    await dialog.getByText('Runs every hour.').waitFor()
    await look('tasks-new')
    await dialog.getByLabel('When').selectOption('On days of the week, at a time')
    await dialog.getByRole('button', { name: 'Monday' }).waitFor()
    await look('tasks-new-days')
    await dialog.getByLabel('When').selectOption('At an interval')
    await insist(() => inDialog('New task').click())
    await isGone()
    const made = task(`say ${HOSTILE}`)
    await made.getByText(/every hour · next in/).waitFor()
    await insist(() => made.getByRole('button', { name: 'Run now' }).click())
    await made.getByRole('button', { name: /^done/ }).click({ timeout: 2 * HOST_MS })
    await made.getByRole('list', { name: 'Recent runs' }).getByText(/pong/).waitFor()
    // The agent used the server that its owner chose, not a key or the operator's model.
    assert.ok(local.requests.some(({ model, text }) => model === MODEL && text.includes('say ')))
    await ranNothing()
    await look('tasks')
  })
  it('the overview shows the first steps until the workspace has completed them', async () => {
    await page.goto(`${url}/dashboard`)
    const steps = page.getByRole('list', { name: 'First steps' })
    const isDone = (name: string) =>
      steps
        .getByRole('listitem')
        .filter({ hasText: `${name}, done` })
        .waitFor()
    await isDone('Create an agent')
    await isDone('Give it a model')
    await steps.getByRole('link', { name: 'Add a file' }).waitFor()
    await look('overview-steps')
    await own.api.pin({ cid: inlineCid(`kept by ${own.name}`).toString(), name: 'Kept' })
    await isDone('Store a file')
    await steps.getByRole('link', { name: 'Talk to it' }).click()
    await page.getByLabel('Message to the agent').fill('hello')
    await page.keyboard.press('Enter')
    await page.getByText('pong: hello').waitFor({ timeout: 2 * HOST_MS })
    await page.getByRole('link', { name: 'Overview' }).click()
    await page.getByRole('heading', { name: 'Health' }).waitFor()
    await steps.waitFor({ state: 'detached' })
    await page.waitForFunction(() => Object.values(localStorage).includes('done'))
  })
  it('a task is changed, disabled and deleted by its name', async () => {
    await page.goto(`${url}/dashboard/agents/${agentId}/tasks`)
    await choose('Weekly review', 'Change')
    await dialog.getByLabel('Time', { exact: true }).fill('18:30')
    await dialog.getByRole('button', { name: 'Monday' }).click()
    await insist(() => inDialog('Save').click())
    await isGone()
    await task('Weekly review').getByText('at 18:30 on Monday and Friday').waitFor()
    const made = task(`say ${HOSTILE}`)
    await insist(() => made.getByRole('switch').click())
    await made.getByText(/· off/).waitFor()
    await insist(async () => {
      // If the engine is unreachable, the list disappears, and the dialog with it, even during the click.
      await page.reload()
      await choose(HOSTILE, 'Delete')
      await inDialog('Delete').click()
    }, 20_000)
    await made.waitFor({ state: 'detached' })
  })
  it('the page of an agent shows a restart step by step', async () => {
    await page.goto(`${url}/dashboard/agents/${agentId}/settings`)
    await choose('Archivist', 'Restart')
    const steps = page.getByRole('list', { name: 'Startup' })
    await steps.getByRole('listitem').filter({ hasText: 'in progress' }).first().waitFor()
    await steps
      .getByRole('listitem')
      .filter({ hasText: 'Start its gateway' })
      .getByText('in progress')
      .waitFor()
    await look('agent-restart')
    await steps.waitFor({ state: 'detached', timeout: UP_MS })
    await page.getByRole('main').getByText('running', { exact: true }).first().waitFor()
    await page.goto(`${url}/dashboard`)
    await page.getByText('is starting').first().waitFor()
  })
  it('three agents are listed with their states, and narrowed by a filter and a search', async () => {
    await insertAgent(context, own, 'Still')
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
    // The memory use of a real agent appears within seconds of its start.
    await row('Archivist')
      .getByText(/^\d+(\.\d)? [MG]B$/)
      .filter({ visible: true })
      .waitFor()
    await row(HOSTILE).getByText('It did not start.').waitFor()
    await ranNothing()
    await look('agents')
    await page
      .getByRole('button', { name: /^More about/ })
      .first()
      .click()
    await page.getByRole('menu').waitFor()
    await look('agents-menu')
    await page.keyboard.press('Escape')
    await page.getByRole('menu').waitFor({ state: 'detached' })
    await page.goto(`${url}/dashboard`)
    const listed = page.getByRole('main').getByRole('listitem')
    await listed.filter({ hasText: HOSTILE }).getByText('failed', { exact: true }).waitFor()
    await look('overview-agents')
    await page.getByRole('link', { name: '1 failed' }).click()
    await row('Archivist').waitFor({ state: 'detached' })
    await row(HOSTILE).first().waitFor()
    await page.getByRole('button', { name: /^all/ }).click()
    await page.getByRole('searchbox').fill('nobody')
    await button('Show all').click()
    await row('Archivist').waitFor()
    await page.getByRole('searchbox').fill('onerror')
    await row('Still').waitFor({ state: 'detached' })
    assert.equal(await page.getByRole('list', { name: 'Agents' }).getByRole('listitem').count(), 1)
  })
  it('an agent is created without a template, and deleted by its name from the list', async () => {
    await page.goto(`${url}/dashboard/agents`)
    await page.getByRole('link', { name: 'New agent' }).click()
    await page.getByLabel('Name', { exact: true }).fill('Sketch')
    await button('Create').click()
    await page.getByRole('list', { name: 'Startup' }).getByText('in progress').first().waitFor()
    await page.getByRole('link', { name: 'Agents', exact: true }).click()
    await choose('Sketch', 'Delete')
    await inDialog('Cancel').click()
    // The focus returns to the menu.
    await page.waitForFunction(() => document.activeElement?.ariaLabel === 'More about Sketch')
    await choose('Sketch', 'Delete')
    await confirmByName('Sketch', 'Delete')
    await row('Sketch').waitFor({ state: 'detached' })
  })
  it('an agent is deleted by its name on its settings page', async () => {
    await page.goto(`${url}/dashboard/agents/${agentId}/settings`)
    // Each page of the agent has the same menu as the list.
    await choose('Archivist', 'Delete')
    await inDialog('Cancel').click()
    await button('Delete this agent').click()
    await confirmByName('Archivist', 'Delete')
    await page.getByRole('heading', { level: 1, name: 'Agents' }).waitFor()
    await row('Still').waitFor()
    assert.equal(await row('Archivist').count(), 0)
  })
  it(`a list of ${MANY} agents is searched, filtered and sorted, and renders only visible rows`, async () => {
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
    await other.goto(`${url}/login#token=${await many.loginToken()}`)
    await other.getByRole('button', { name: 'Sign in' }).click()
    await other.getByRole('heading', { name: 'Overview' }).waitFor()
    await other.getByRole('button', { name: 'Hide' }).click()
    await other.getByText('First steps').waitFor({ state: 'detached' })
    await other.reload()
    await other.getByRole('heading', { name: 'Health' }).waitFor()
    assert.equal(await other.getByText('First steps').count(), 0)
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
    await other.getByText('No matching agents.').waitFor()
    await other.close()
  })
  it('the browser reported no errors', () => assert.deepEqual(complaints, []))
})
