/** A user of several workspaces switches between them. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { HOSTILE, openDashboard } from './support.ts'

const { url, own, workspace, page, signIn, complaints } = await openDashboard()
const other = await workspace()
const hostile = `${HOSTILE}${other.id}`
const renamed = await other.api.request('PATCH', `/v0/workspaces/${other.id}`, { json: { name: hostile } })
assert.equal(renamed.status, 200)
other.name = hostile
const member = await own.member('member')
await other.member('viewer', member.name)
await signIn(page, member.name)
const choice = page.getByRole('combobox', { name: 'Workspace' })
const isIn = async (name: string, on = page) =>
  on
    .getByRole('combobox', { name: 'Workspace' })
    .locator('option:checked')
    .filter({ hasText: name })
    .waitFor({ state: 'attached' })

describe('a user of several workspaces', () => {
  it('the column, the palette and the account switch workspaces, and other tabs follow', async () => {
    await isIn(own.name)
    const tab = await page.context().newPage()
    await tab.goto(`${url}/dashboard/agents`)
    await tab.getByRole('link', { name: 'New agent' }).waitFor()
    await page.bringToFront()
    await choice.selectOption(hostile)
    await isIn(hostile)
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
    assert.equal(await page.evaluate('window.ran'), undefined)
    // A viewer sees fewer actions. The switch replaced the session.
    await page.getByRole('link', { name: 'Agents', exact: true }).click()
    await page.getByText('No agents yet').waitFor()
    const body = await page.evaluate(async () => (await fetch('/v0/sessions')).json())
    assert.deepEqual([body.data.sessions.length, body.data.sessions[0].current], [1, true])
    // The other tab notices the switch when it becomes visible. It may already be reloading.
    await tab.bringToFront()
    await tab.locator('body').dispatchEvent('visibilitychange')
    await isIn(hostile, tab)
    await tab.close()
    await page.keyboard.press('Control+k')
    await page.getByPlaceholder('Go to a page').fill(own.name)
    await page.getByRole('option', { name: `Go to the workspace ${own.name}` }).click()
    await isIn(own.name)
    await page.setViewportSize({ width: 390, height: 780 })
    await page.goto(`${url}/dashboard/account`)
    const workspaces = page.getByRole('list', { name: 'Workspaces' })
    await workspaces.getByRole('listitem').filter({ hasText: own.name }).getByText('this one').waitFor()
    await workspaces.getByRole('button', { name: 'Go there' }).click()
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
    await page.setViewportSize({ width: 1280, height: 800 })
    await isIn(hostile)
  })
  it('a switch whose response is lost still succeeds, and the user stays signed in', async () => {
    await page.route('**/v0/sessions/move', async (route) => {
      assert.equal((await route.fetch()).status(), 200)
      await route.abort('connectionreset')
    })
    const loaded = page.waitForEvent('domcontentloaded')
    await choice.selectOption(own.name)
    await isIn(own.name)
    // The choice shows the workspace before the whole page reloads.
    await loaded
    await page.unrouteAll({ behavior: 'ignoreErrors' })
    await choice.selectOption(hostile)
    await isIn(hostile)
    await page.reload()
    await isIn(hostile)
  })
  it('the browser reported no errors', () => assert.deepEqual(complaints, []))
})
