/** An agent's chat, log and resource use, in a real browser with a real agent. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, describe, it } from 'node:test'
import { sharedAgent } from '../../../test/contract/openclaw/context.ts'
import { until } from '../../../test/support/processes.ts'
import { actionsOn, HOST_MS, HOSTILE, openDashboard } from '../support.ts'

const dashboard = await openDashboard({ isShared: true })
const { url, own, page, complaints, signIn, look } = dashboard
const agent = await sharedAgent(dashboard)
await signIn()
const home = `${url}/dashboard/agents/${agent.agentId}`
const box = page.getByLabel('Message to the agent')
const log = page.getByRole('log')
const { insist } = actionsOn(page)

/** Sends a message. The button returns if the message was not sent. */
const begin = (text: string) =>
  insist(async () => {
    await box.fill(text)
    await page.getByRole('button', { name: 'Send' }).waitFor()
    await page.keyboard.press('Enter')
  })

/** Sends a message, and waits for the agent's reply. */
async function say(text: string) {
  await begin(text)
  await page.getByRole('button', { name: 'Send' }).waitFor({ timeout: 2 * HOST_MS })
}

/** Runs in the page: records each displayed state of a tool call. */
function recordCall(text: string): void {
  const states: string[] = []
  Object.assign(window, { states })
  new MutationObserver(() => {
    const calls = [...document.querySelectorAll('summary')]
    const call = calls.find((one) => one.textContent?.includes(text))
    const state = call && (/(runs|done|failed)$/.exec(call.textContent ?? '')?.[1] ?? 'nothing')
    if (state && state !== states.at(-1)) states.push(state)
  }).observe(document.body, { subtree: true, childList: true, characterData: true })
}

describe('chat', () => {
  it('the chat of a new agent explains what to do', async () => {
    await page.goto(home)
    await log.getByText('No messages yet').waitFor()
    await look('chat-empty')
  })
  it('a conversation that is opening shows this at once', async () => {
    const held = Promise.withResolvers<void>()
    const reads = /\/conversations/
    await page.route(reads, async (route) => {
      await held.promise
      await route.continue()
    })
    await page.reload()
    const chat = page.getByRole('region', { name: 'Chat' })
    await chat.getByRole('status').getByText('Loading…').waitFor()
    await look('chat-opening')
    held.resolve()
    await log.getByText('No messages yet').waitFor()
    await chat.getByRole('status').getByText('Loading…').waitFor({ state: 'detached' })
    await page.unrouteAll({ behavior: 'ignoreErrors' })
  })
  it('the message box grows with its text up to a limit, and shrinks again', async () => {
    const height = () => box.evaluate((one) => one.clientHeight)
    const one = await height()
    await box.fill('words without a line break '.repeat(20))
    const many = await height()
    assert.ok(many > 2 * one, `${one} px, then ${many} px`)
    assert.equal(await box.evaluate((one) => one.scrollHeight), many)
    await box.fill('a line\n'.repeat(60))
    const most = await height()
    assert.ok(most < 300 && most >= many, `${most} px`)
    await box.fill('')
    assert.equal(await height(), one)
  })
  it('a reply is rendered as Markdown, and stays after a reload', async () => {
    await say(
      '**Three** books, all on [ships](https://example.org/ships):\n\n| a | b |\n|---|---|\n| 1 | 2 |',
    )
    await log.getByText('pong:').waitFor()
    await log.getByRole('cell', { name: '2' }).waitFor()
    const link = log.getByRole('link', { name: 'ships' })
    assert.match((await link.getAttribute('rel')) ?? '', /noopener/)
    await page.reload()
    await log.getByRole('cell', { name: '2' }).waitFor()
  })
  it('a tool call is folded, and expands', async () => {
    await say('run: echo seven ships')
    const call = log.locator('summary').filter({ hasText: 'exec' })
    await call.getByText('done').waitFor()
    await call.click()
    await log.locator('pre').getByText('seven ships', { exact: true }).waitFor()
    await look('chat')
  })
  it('a tool call is shown as running until it ends, even if stale reads arrive', async () => {
    await page.evaluate(recordCall, 'nine ships')
    const end = `/tmp/${randomUUID()}`
    await begin(`run and wait: echo nine ships; until [ -e ${end} ]; do sleep 0.1; done; true`)
    // A read that started during the reply arrives after it, so it is older than what the page already knows.
    const replied = Promise.withResolvers<void>()
    const reads = /\/conversations\/[0-9a-f-]+\?/
    let held = 0
    await page.route(reads, async (route) => {
      const response = await route.fetch()
      held++
      await replied.promise
      await route.fulfill({ response }).catch(() => {})
    })
    const call = log.locator('summary').filter({ hasText: 'nine ships' })
    await call.getByText('runs').waitFor()
    await page.getByRole('button', { name: 'Stop' }).waitFor()
    await until('the conversation was read', async () => {
      await page.evaluate(() => document.dispatchEvent(new Event('visibilitychange', { bubbles: true })))
      return held > 0
    })
    const touch = () => own.api.post(`${agent.path}/console/exec`, { command: `touch ${end}` })
    await until('the command may end', async () => (await touch()).status === 200)
    await log.getByText('ran: nine ships').waitFor()
    await call.getByText('done', { exact: true }).waitFor()
    replied.resolve()
    await page.getByRole('button', { name: 'Send' }).waitFor({ timeout: 2 * HOST_MS })
    await page.unrouteAll({ behavior: 'ignoreErrors' })
    assert.deepEqual(await page.evaluate('window.states'), ['runs', 'done'])
  })
  it('markup in an agent’s reply runs no scripts and sends no requests', async () => {
    await page.getByRole('button', { name: 'New conversation' }).click()
    await log.getByText('No messages yet').waitFor()
    await say(`${HOSTILE} ![seen](https://example.org/pixel.png) [run](javascript:window.ran=1) <b>bold</b>`)
    await log.getByText('Image: seen').waitFor()
    assert.equal(await log.locator('img, script, b').count(), 0)
    assert.equal(await log.locator('a[href^="javascript"]').count(), 0)
    await say(`run: echo '${HOSTILE}'`)
    await log.locator('summary').filter({ hasText: 'exec' }).first().click()
    assert.equal(await page.evaluate('window.ran'), undefined)
  })
  it('a reply continues after a reload, and can be stopped', async () => {
    await insist(async () => {
      await box.fill('run and wait: sleep 300')
      await page.getByRole('button', { name: 'Send' }).click()
    })
    await log.locator('summary').filter({ hasText: 'sleep 300' }).getByText('runs').waitFor()
    await page.reload()
    await insist(() => page.getByRole('button', { name: 'Stop' }).click())
    await page.getByRole('button', { name: 'Send' }).waitFor()
  })
  it('an earlier conversation is reopened and deleted', async () => {
    await page.getByRole('link', { name: /Three/ }).click()
    await log.getByRole('cell', { name: '2' }).waitFor()
    await page.getByRole('button', { name: /Delete the conversation .*Three/ }).click()
    await insist(() => page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click())
    await page.getByRole('link', { name: /Three/ }).waitFor({ state: 'detached' })
    await log.getByText('No messages yet').waitFor()
  })
})

describe('the log', () => {
  it('the log is followed, searched and filtered', async () => {
    await page.getByRole('link', { name: 'Logs', exact: true }).click()
    await page.getByText('Live').waitFor()
    const lines = page.getByRole('region', { name: 'Log' })
    await lines.getByText('INFO').first().waitFor()
    await look('logs')
    await page.getByLabel('Search').fill('no line has this')
    await page.getByText('No matching lines').waitFor()
    await page.getByLabel('Search').fill('')
    await page.getByLabel('Source').selectOption('agentd')
    await lines.waitFor()
    const [file] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Download' }).click(),
    ])
    assert.equal(file.suggestedFilename(), `${agent.agentId}.log`)
  })
})

describe('resource use', () => {
  it('an agent’s resource use is shown as charts and as a table', async () => {
    await page.getByRole('link', { name: 'Usage', exact: true }).click()
    await page.getByRole('img', { name: /Memory over the last hour: now/ }).waitFor()
    await page.getByText('As a table').first().click()
    await page.getByRole('cell', { name: /cores/ }).first().waitFor()
    await look('usage')
  })
})

describe('the browser', () => {
  it('the browser reported no errors', () => assert.deepEqual(complaints, []))
})
after(() => page.close())
