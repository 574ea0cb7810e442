/** Spending on models, budgets and the switch that stops an agent, in a real browser. Rows stand for what agents spent. */
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { describe, it } from 'node:test'
import { insertAgentRow } from '../../test/support/agent-row.ts'
import { actionsOn, HOSTILE, openDashboard } from './support.ts'

const { url, own, page, complaints, sql, look, signIn, newPage } = await openDashboard()
const { button, dialog, inDialog, isGone, ranNothing } = actionsOn(page)
const main = page.locator('main')
const budget = page.getByRole('region', { name: 'Budget' })
const agents = await Promise.all(
  ['Ada', HOSTILE].map((name) =>
    insertAgentRow({ query: sql }, { workspaceId: own.id, name, purgedAt: new Date() }),
  ),
)
const [ada] = agents
assert.ok(ada)

/** Writes what an agent spent today. */
const spend = (agentId: string, usd: string, provider: string, model: string, session: string) =>
  sql(
    `INSERT INTO model_spending (workspace_id, agent_id, day, provider, model, session, requests, errors, input, output,
       cached_input, cache_write, reasoning, usd, first_byte_ms, total_ms)
     VALUES ($1, $2, (now() AT TIME ZONE 'UTC')::date, $3, $4, $5, 4, 1, 40000, 2000, 0, 0, 0, $6, 2000, 8000)`,
    [own.id, agentId, provider, model, session, usd],
  )

describe('spending', () => {
  it('spending is shown by day, model and agent, also to a keyboard, and as CSV', async () => {
    await signIn()
    await page.goto(`${url}/dashboard/spending`)
    await page.getByText('No calls to models this month').waitFor()
    for (const { id } of agents) {
      await spend(id, '1.25', 'anthropic', 'claude-opus-5', 'openclaw-cron-1')
      await spend(id, '0.0021', 'openai', HOSTILE, '')
    }
    await page.reload()
    await main.getByText('$2.50', { exact: true }).first().waitFor()
    await page.getByRole('table', { name: 'By agent' }).getByRole('link', { name: HOSTILE }).waitFor()
    await page.getByRole('table', { name: 'By model' }).getByText('anthropic/claude-opus-5').waitFor()
    const day = page.getByRole('slider', { name: 'Day' })
    await day.focus()
    await page.keyboard.press('End')
    await page.keyboard.press('Home')
    const [, , date = ''] = new Date().toISOString().slice(0, 10).split('-')
    for (let i = 1; i < Number(date); i++) await page.keyboard.press('ArrowRight')
    assert.match((await day.getAttribute('aria-valuetext')) ?? '', new RegExp(` ${Number(date)}: \\$2\\.50$`))
    await button('By agent').click()
    await button('Tokens').click()
    await page.getByRole('list', { name: 'Tokens, by day' }).getByText('Ada').waitFor()
    assert.match(page.url(), /by=agent/)
    await look('spending')
    const [file] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('link', { name: 'Download CSV' }).click(),
    ])
    assert.match(await readFile(await file.path(), 'utf8'), /claude-opus-5/)
    await button('Last month').click()
    await page.getByText('No calls to models last month').waitFor()
    await ranNothing()
  })
  it('an owner limits the workspace and an agent, and sees what is left', async () => {
    await button('Set a budget').click()
    await dialog.getByLabel('US dollars per month').fill('5.00')
    await dialog.getByLabel('Requests per minute').fill('30')
    await look('spending-budget')
    await inDialog('Save').click()
    await isGone()
    await budget.getByText('$2.50 of $5.00').waitFor()
    await budget.getByText('At most 30 requests per minute.').waitFor()
    await page.goto(`${url}/dashboard/agents/${ada.agentId}/models`)
    await button('Set a budget').click()
    await dialog.getByLabel('US dollars per day').fill('1')
    await inDialog('Save').click()
    await isGone()
    await page.getByRole('link', { name: 'budget spent' }).waitFor()
    await main.getByText(/reason: The budget of this agent is spent/).waitFor()
    await page.getByRole('table', { name: 'By conversation and task' }).getByText('openclaw-cron-1').waitFor()
    await look('agent-models')
    await button('Change the budget').click()
    await dialog.getByLabel('US dollars per day').fill('')
    await inDialog('Save').click()
    await isGone()
    await budget.getByText('No limit is set.').waitFor()
  })
  it('an agent is paused after a question, and resumed', async () => {
    await button('Pause').click()
    await inDialog('Pause').click()
    await isGone()
    await page.getByRole('link', { name: 'models paused' }).waitFor()
    await main.getByText(/^Paused .+ by you\.$/).waitFor()
    await look('agent-models-paused')
    await button('Resume').click()
    await main.getByText('may call models').waitFor()
    await page.getByRole('link', { name: 'models paused' }).waitFor({ state: 'detached' })
  })
  it('members see budgets, and only owners change them', async () => {
    const { name } = await own.member('member')
    const on = await newPage()
    await signIn(on, name)
    await on.goto(`${url}/dashboard/spending`)
    await on.getByText('$2.50 of $5.00').waitFor()
    assert.equal(await on.getByRole('button', { name: 'Change the budget' }).count(), 0)
    await on.context().close()
  })
  it('the browser reported no errors', () => assert.deepEqual(complaints, []))
})
