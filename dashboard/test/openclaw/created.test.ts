/** An agent in a real browser, from its creation with a template's tasks to its deletion, with a real engine. */
import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { LOCAL_SERVERS } from '../../../src/lib/net/local-models.ts'
import { inlineCid } from '../../../test/contract/context.ts'
import { ensureEngines } from '../../../test/support/engines.ts'
import { MODEL, startModel } from '../../../test/support/model.ts'
import { actionsOn, HOST_MS, HOSTILE, openDashboard, withoutModel } from '../support.ts'

/** A start takes half a minute, and longer on a busy machine. */
const UP_MS = 3 * HOST_MS

const context = await openDashboard()
const { url, own, page, complaints, look, signIn } = context
await ensureEngines()

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

describe('an agent from its creation to its deletion', () => {
  it('an agent is created from a template, and its start is shown step by step', async () => {
    await signIn()
    const putBack = await withoutModel(page)
    await page.goto(`${url}/dashboard/agents/new`)
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
    await page.goto(`${url}/dashboard/agents`)
    // The memory use appears within seconds of a start.
    await row('Archivist')
      .getByText(/^\d+(\.\d)? [MG]B$/)
      .filter({ visible: true })
      .waitFor()
  })
  it('an agent is deleted by its name on its settings page', async () => {
    await page.goto(`${url}/dashboard/agents/${agentId}/settings`)
    // Each page of the agent has the same menu as the list.
    await choose('Archivist', 'Delete')
    await inDialog('Cancel').click()
    await button('Delete this agent').click()
    await confirmByName('Archivist', 'Delete')
    await page.getByRole('heading', { level: 1, name: 'Agents' }).waitFor()
    await row('Archivist').waitFor({ state: 'detached' })
  })
  it('the browser reported no errors', () => assert.deepEqual(complaints, []))
})
