/** Invited users join in the browser, without a key. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { openDashboard } from './support.ts'

const { url, own, workspace, page, look, complaints } = await openDashboard()
const other = await workspace()
const name = `invited to ${own.id}`
const invitation = async ({ id, api }: typeof own) => {
  const { body } = await api.post(`/v0/workspaces/${id}/invitations`, { role: 'viewer' })
  return `${url}/login#invitation=${body.data.token}`
}

describe('an invitation', () => {
  it('a new user joins with a name', async () => {
    await page.goto(await invitation(own))
    await page.getByRole('heading', { name: 'Join a workspace' }).waitFor()
    await page.waitForURL(({ hash }) => hash === '')
    await look('invitation')
    await page.getByLabel('Your name').fill(name)
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Account' }).waitFor()
    await page.getByText(name).first().waitFor()
  })
  it('a signed-in user joins another workspace under the same account, and is switched to it', async () => {
    const link = await invitation(other)
    await page.goto(link)
    await page.getByText(`You are signed in as ${name}.`).waitFor()
    await page.getByRole('button', { name: `Join as ${name}` }).click()
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
    const choice = page.getByRole('combobox', { name: 'Workspace' }).locator('option:checked')
    await choice.filter({ hasText: other.name }).waitFor({ state: 'attached' })
    await page.goto(link)
    await page.getByRole('button', { name: `Join as ${name}` }).click()
    await page.getByRole('alert').getByText('There is no such invitation').waitFor()
  })
  it('the browser reported no errors', () => assert.deepEqual(complaints, []))
})
