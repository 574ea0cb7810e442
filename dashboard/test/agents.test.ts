/** The list of agents, templates, and an agent's creation and deletion, in a real browser. They need no engine. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, it } from 'node:test'
import { WALLS, type Wall } from '../../src/sandboxes/walls.ts'
import { insertAgent } from '../../test/contract/agents/rows.ts'
import { manifest, files as templateFiles } from '../../test/contract/agents/templates.ts'
import { REPOSITORIES } from '../../test/contract/context.ts'
import { useStandIn as takeStandIn } from '../../test/contract/openclaw/context.ts'
import { STAND_IN } from '../../test/integration/agents/stand-in.ts'
import { insertAgentRow } from '../../test/support/agent-row.ts'
import { commitTo } from '../../test/support/git-repositories.ts'
import { cronInWords } from '../src/pages/agent/tasks/schedule.ts'
import { actionsOn, HOSTILE, openDashboard } from './support.ts'

const MANY = 300

const context = await openDashboard()
const { url, env, own, page, complaints, workspace, sql, look, signIn, newPage } = context
await takeStandIn(context, own, { version: STAND_IN.slow, name: 'Sketch' })

const { button, choose, confirmByName, dialog, inDialog, isGone, ranNothing, row } = actionsOn(page)

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
  it('three agents are listed with their states, and narrowed by a filter and a search', async () => {
    const common = { workspaceId: own.id, purgedAt: new Date() }
    const { id } = await insertAgentRow({ query: sql }, { ...common, name: 'Archivist' })
    await sql(
      `INSERT INTO agent_usage (agent_id, at, memory_bytes, memory_limit_bytes)
       VALUES ($1, now() + interval '1 hour', 3000000, 1000000000)`,
      [id],
    )
    await insertAgent(context, own, 'Still')
    await insertAgentRow(
      { query: sql },
      { ...common, name: HOSTILE, status: 'not_running', statusReason: HOSTILE },
    )
    await page.goto(`${url}/dashboard/agents`)
    await row('Archivist').getByText('3 MB / 1 GB').filter({ visible: true }).waitFor()
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
