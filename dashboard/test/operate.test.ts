/**
 * The operator's pages in a real browser, against a separate Berth. It may send webhooks to this machine, and one of
 * its users is an instance admin.
 */
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { after, describe, it } from 'node:test'
import type { Page } from 'playwright-core'
import { inlineCid } from '../../test/contract/context.ts'
import { addMember } from '../../test/contract/workspaces/rows.ts'
import { until } from '../../test/support/processes.ts'
import { startStack } from '../../test/support/stack.ts'
import { startReceiver } from '../../test/support/webhook-receiver.ts'
import { HOSTILE, openDashboard, withSecrets } from './support.ts'

const receiver = await startReceiver()
after(() => receiver.stop())
const dashboard = await openDashboard({
  berth: await startStack({
    database: 'of the run',
    env: { BERTH_RUNTIME: 'process', BERTH_WEBHOOK_ALLOW: receiver.allowed },
  }),
})
const { url, anonymous, berth, own, page, complaints, asked, newPage, signIn, look } = dashboard
/** No node has this CID, so its pin stays pending. */
const ABSENT = 'bafkreifzjut3te7nhyekklss27nh3k72ysco7y32koao5eei66wof36n5e'
await signIn()

const open = (path: string, on = page) => on.goto(`${url}/dashboard${path}`)
const tab = (name: string, on = page) =>
  on.getByRole('navigation', { name: 'Operate' }).getByRole('link', { name, exact: true })
const dialog = (on = page) => on.getByRole('dialog')

/** A page with another user of the workspace signed in. */
async function signedIn(user: string): Promise<Page> {
  const on = await newPage()
  await signIn(on, user)
  return on
}

/** Reads the text that a dialog shows once, and closes the dialog. */
async function readOnce(): Promise<string> {
  await dialog().getByText('it is shown only once').waitFor()
  const shown = (await dialog().locator('p.font-mono').textContent()) ?? ''
  await dialog().getByRole('button', { name: 'I have it' }).click()
  await dialog().waitFor({ state: 'detached' })
  return shown
}

describe('operations', () => {
  it('operations are listed by state and kind, which are in the URL', async () => {
    await own.api.pin({ cid: inlineCid(own.id).toString(), name: 'There' })
    await own.api.pin({ cid: ABSENT, name: 'Absent' })
    await open('/operate/operations')
    await page.getByRole('cell', { name: 'done' }).waitFor()
    await page.getByLabel('State').selectOption('succeeded')
    await page.getByText('looking for nodes that have it').waitFor({ state: 'detached' })
    assert.match(page.url(), /state=succeeded/)
    await page.getByLabel('Operation', { exact: true }).selectOption('agent.restart')
    await page.getByText('No matching operations.').waitFor()
    await page.reload()
    await page.getByText('No matching operations.').waitFor()
    await open('/operate/operations?state=nonsense')
    await page.getByText('looking for nodes that have it').waitFor()
    await look('operations')
  })
  it('an operation has a page with its steps, and is cancelled there', async () => {
    await page
      .getByRole('row', { name: 'looking for nodes that have it' })
      .getByRole('link', { name: 'Pin a CID' })
      .click()
    await page.getByRole('listitem').filter({ hasText: 'looking for nodes that have it' }).waitFor()
    await look('operation')
    await page.getByRole('button', { name: 'Cancel' }).click()
    await dialog().getByRole('button', { name: 'Cancel the operation' }).click()
    await page.getByRole('listitem').filter({ hasText: 'cancelled' }).waitFor()
    await page.getByRole('button', { name: 'Cancel' }).waitFor({ state: 'detached' })
  })
})

describe('keys', () => {
  it('a key is created with scopes from a list, shown once, works, and is revoked by its name', async () => {
    await open('/operate/keys?do=new')
    await dialog().getByRole('textbox', { name: 'Name', exact: true }).fill('Reader')
    await dialog().getByLabel('Expires').selectOption('In 30 days')
    await dialog().getByLabel('Write files').uncheck()
    await dialog().getByText('Choose at least one permission').waitFor()
    assert.ok(await dialog().getByRole('button', { name: 'Create the key' }).isDisabled())
    await dialog().getByLabel('Read groups').check()
    await look('key-new')
    await dialog().getByRole('button', { name: 'Create the key' }).click()
    const made = anonymous.as(await readOnce())
    assert.equal((await made.get('/v3/groups/public')).status, 200)
    assert.equal((await made.get('/v3/files/public')).status, 403)
    const row = page.getByRole('row', { name: 'Reader' })
    await row.getByText('in 30 days').waitFor()
    await row.getByText('Read groups').waitFor()
    await look('keys')
    await row.getByRole('button', { name: 'Revoke' }).click()
    await dialog().getByRole('button', { name: 'Revoke' }).click()
    await row.waitFor({ state: 'detached' })
    assert.equal((await made.get('/v3/groups/public')).status, 401)
    await page.getByLabel('Keys', { exact: true }).selectOption('Revoked')
    await page.getByRole('row', { name: 'Reader' }).getByText('revoked').waitFor()
  })
})

describe('members', () => {
  it('the last owner cannot be removed or change roles until there is another owner', async () => {
    await open('/operate/members')
    const row = page.getByRole('listitem').filter({ hasText: 'Cannot change while there is no other owner' })
    await row.waitFor()
    assert.equal(await row.locator('button, select').count(), 0)
    await look('members')
    const { id } = await addMember(own, 'owner')
    await page.getByLabel('Role of owner', { exact: true }).waitFor()
    assert.equal((await own.api.delete(`/v0/workspaces/${own.id}/members/${id}`)).status, 200)
    await row.waitFor()
  })
  it('a role is changed, and a member is removed', async () => {
    const { name } = await addMember(own, 'viewer')
    const role = page.getByLabel(`Role of ${name}`)
    await role.selectOption('Member')
    await page.getByRole('listitem').filter({ hasText: name }).getByText('their own keys').waitFor()
    await page.getByRole('listitem').filter({ hasText: name }).getByRole('button', { name: 'Remove' }).click()
    await dialog().getByRole('button', { name: 'Remove' }).click()
    await role.waitFor({ state: 'detached' })
  })
  it('an invitation is created, its token adds a member, and another invitation is revoked', async () => {
    const invite = async (email: string) => {
      await page.getByRole('button', { name: 'Invite somebody' }).click()
      await dialog().getByLabel('Role').selectOption('Viewer')
      await dialog().getByLabel('Invitee').fill(email)
      await dialog().getByRole('button', { name: 'Create the invitation' }).click()
      return (await readOnce()).split('/login#invitation=')[1] ?? ''
    }
    const name = `invited-${own.id}`
    const first = { token: await invite('a@example.org'), name }
    assert.equal((await anonymous.post('/v0/invitations/accept', first)).status, 201)
    await page.getByLabel(`Role of ${name}`).waitFor()
    const token = await invite('b@example.org')
    await page
      .getByRole('listitem')
      .filter({ hasText: 'b@example.org' })
      .getByRole('button', { name: 'Revoke' })
      .click()
    await page.getByRole('listitem').filter({ hasText: 'b@example.org' }).getByText('revoked').waitFor()
    assert.equal((await anonymous.post('/v0/invitations/accept', { token, name: 'nobody' })).status, 404)
  })
})

describe('webhooks', () => {
  const where = `${receiver.url}?q=${encodeURIComponent(HOSTILE)}`

  it('a webhook is created with events from a list, and a test shows the request and response', async () => {
    receiver.answerWith((response) => response.writeHead(200).end(HOSTILE))
    await open('/operate/webhooks')
    await page.getByRole('button', { name: 'New webhook' }).click()
    await dialog().getByLabel('URL').fill('http://127.0.0.1:1/refused')
    await dialog().getByLabel('Everything').uncheck()
    await dialog().getByLabel('Pins').check()
    await dialog().getByLabel('agent.error').check()
    await look('webhook-new')
    await dialog().getByRole('button', { name: 'Create the webhook' }).click()
    await dialog().getByRole('alert').waitFor()
    await dialog().getByLabel('URL').fill(where)
    await dialog().getByRole('button', { name: 'Create the webhook' }).click()
    assert.match(await readOnce(), /^whsec_/)
    await page.getByText('Pins, agent.error').waitFor()
    await page.getByRole('link', { name: where }).click()
    await page.getByRole('button', { name: 'Send a test' }).click()
    const row = page.getByRole('row', { name: 'webhook.test' })
    await row.getByText('delivered').waitFor()
    await look('webhook')
    await row.getByRole('button', { name: 'Details' }).click()
    await dialog().getByText('"webhook.test"').waitFor()
    await dialog().getByText(HOSTILE).waitFor()
    assert.equal(await page.evaluate('window.ran'), undefined)
    await look('delivery')
    await dialog().getByRole('button', { name: 'Close' }).click()
  })
  it('a delivery is redelivered, and a secret is rotated', async () => {
    const before = receiver.received.length
    await page.getByRole('button', { name: 'Send again' }).click()
    await until('it is sent again', async () => receiver.received.length > before)
    await page.getByRole('row', { name: 'webhook.test' }).getByText('delivered').waitFor()
    await page.getByRole('button', { name: 'New secret' }).click()
    await dialog().getByRole('button', { name: 'New secret' }).click()
    assert.match(await readOnce(), /^whsec_/)
  })
  it('a webhook disabled by its target shows why, is re-enabled, and is deleted by its URL', async () => {
    receiver.answerWith((response) => response.writeHead(410).end('gone for good'))
    await page.getByRole('button', { name: 'Send a test' }).click()
    await page.getByText('its target answered 410').waitFor()
    await page.getByText('Redeliver what you need').waitFor()
    await page.getByRole('button', { name: 'Switch on' }).click()
    await page.getByRole('button', { name: 'Switch off' }).waitFor()
    await page.getByRole('button', { name: 'Delete' }).click()
    await dialog().getByRole('button', { name: 'Delete' }).click()
    await page.getByText('No webhooks yet').waitFor()
  })
})

describe('the audit', () => {
  it('audit entries are filtered, and saved as JSON lines', async () => {
    await own.api.request('POST', '/v3/groups/private', {
      json: { name: 'audited' },
      headers: { 'user-agent': HOSTILE },
    })
    await own.api.post('/v0/webhooks', { url: 'http://127.0.0.1:1/', events: ['*'] })
    await open('/operate/audit')
    await page.getByRole('cell', { name: 'createGroup' }).first().waitFor()
    await page.getByText(HOSTILE).waitFor()
    await look('audit')
    await page.getByLabel('Result').selectOption('refused')
    await page.getByRole('cell', { name: 'createGroup' }).first().waitFor({ state: 'detached' })
    await page.getByLabel('Action').fill('createWebhook')
    await page.getByRole('cell', { name: 'refused 400' }).first().waitFor()
    await page.getByRole('cell', { name: 'changeMember' }).waitFor({ state: 'detached' })
    assert.match(page.url(), /result=refused/)
    const saved = page.waitForEvent('download')
    await page.getByRole('button', { name: 'Download as JSON lines' }).click()
    const file = await saved
    assert.match(file.suggestedFilename(), /^audit-\d{4}-\d\d-\d\d\.jsonl$/)
    const lines = (await readFile((await file.path()) ?? '', 'utf8')).trimEnd().split('\n')
    assert.ok(lines.length >= 2)
    for (const line of lines) assert.equal(JSON.parse(line).action, 'createWebhook')
  })
})

describe('the instance', () => {
  it('an admin sees health, workers, workspaces and plans, and creates and changes a workspace', async () => {
    const { name: owner } = await addMember(own, 'owner')
    const on = await signedIn(owner)
    await open('/operate', on)
    await tab('Audit', on).waitFor()
    assert.equal(await tab('Health', on).count(), 0)
    await berth('users', 'admin', owner)
    // The web process learns of the command a moment later.
    await until('the page offers it', async () => {
      await on.reload()
      await tab('Audit', on).waitFor()
      return tab('Health', on).isVisible()
    })
    await on.context().close()
    await open('/operate/health')
    await page.getByText('Everything works.').or(page.getByText('a component is unhealthy')).waitFor()
    await page.getByText('Stores all data').waitFor()
    await look('health')
    await tab('Workers').click()
    await page.getByText('alive').waitFor()
    await look('workers')
    await tab('Plans').click()
    await page.getByRole('columnheader', { name: 'unlimited', exact: true }).waitFor()
    await look('plans')
    await tab('Workspaces').click()
    const name = `made ${own.id}`
    await page.getByRole('button', { name: 'New workspace' }).click()
    await dialog().getByRole('textbox', { name: 'Name', exact: true }).fill(name)
    await dialog().getByLabel('Owner').fill(`owner of ${own.id}`)
    await dialog().getByRole('button', { name: 'Create the workspace' }).click()
    const made = anonymous.as(await readOnce())
    assert.equal((await made.get('/v0/me')).body.data.plan.name, 'free')
    const row = page.getByRole('row', { name })
    await row.getByRole('button', { name: 'Change' }).click()
    await dialog().getByRole('textbox', { name: 'Name', exact: true }).fill(own.name)
    await dialog().getByRole('button', { name: 'Save' }).click()
    await dialog().getByRole('alert').waitFor()
    await dialog().getByRole('textbox', { name: 'Name', exact: true }).fill(name)
    await dialog().getByLabel('Plan').selectOption('unlimited')
    await dialog().getByRole('button', { name: 'Save' }).click()
    await row.getByRole('cell', { name: 'unlimited' }).waitFor()
    await look('workspaces')
    await tab('Audit').click()
    await page.getByLabel('Scope').selectOption('All workspaces')
    await page.getByRole('cell', { name: 'createWorkspace' }).first().waitFor()
  })
})

describe('rights', () => {
  /** The buttons of a page of Operate, without links and filters. */
  const buttons = (on: Page) => on.locator('main').getByRole('button').allTextContents()
  const pages = [
    'operations',
    'keys',
    'egress',
    'members',
    'webhooks',
    'audit',
    'health',
    'workers',
    'workspaces',
    'plans',
  ]

  /** How many of them everyone can open. */
  const OPEN = 3
  for (const [role, offered] of [
    ['viewer', []],
    ['member', ['New API key', 'Cancel', 'Save']],
  ] as const)
    it(`a ${role} sees only what a ${role} may do`, async () => {
      await own.api.pin({ cid: ABSENT, name: `for a ${role}` })
      const { name } = await addMember(own, role)
      const on = await signedIn(name)
      const found = new Set<string>()
      for (const one of pages) {
        await open(`/operate/${one}`, on)
        await tab('Operations', on).waitFor()
        if (pages.indexOf(one) < OPEN)
          await on
            .getByRole('table')
            .or(on.getByText(/No API keys yet|has no policy/))
            .first()
            .waitFor()
        else await on.getByText(/Only (owners|admins) of/).waitFor()
        for (const button of await buttons(on)) found.add(button)
      }
      assert.deepEqual(
        await on.getByRole('navigation', { name: 'Operate' }).getByRole('link').allTextContents(),
        ['Operations', 'API keys', 'Connect', 'Egress'],
      )
      assert.deepEqual([...found].filter((text) => text !== 'Revoke').sort(), [...offered].sort())
      await on.context().close()
    })

  it('a right revoked while a form is open is explained in words', async () => {
    const { id, name } = await addMember(own, 'member')
    const on = await signedIn(name)
    await open('/operate/keys?do=new', on)
    await dialog(on).getByRole('textbox', { name: 'Name', exact: true }).fill('too late')
    // An event notifies the page, which must not disable the button before the click.
    const told = Promise.withResolvers<void>()
    await on.route('**/v0/me', (route) => told.promise.then(() => route.continue()).catch(() => {}))
    const path = `/v0/workspaces/${own.id}/members/${id}`
    assert.equal((await own.api.request('PATCH', path, { json: { role: 'viewer' } })).status, 200)
    await dialog(on).getByRole('button', { name: 'Create the key' }).click()
    told.resolve()
    await dialog(on).getByRole('alert').getByText('Missing scope: org:write').waitFor()
    await dialog(on).getByText('Viewers cannot create keys').waitFor()
    assert.ok(await dialog(on).getByRole('button', { name: 'Create the key' }).isDisabled())
    await dialog(on).getByRole('button', { name: 'Cancel' }).click()
    await dialog(on).waitFor({ state: 'detached' })
    await on.getByRole('table', { name: 'API keys' }).waitFor()
    assert.deepEqual(await buttons(on), [])
    await on.context().close()
  })
})

describe('everything', () => {
  it('no URL requested by an operator page contains a token, a secret or a key', () => {
    assert.ok(asked.length > 100)
    assert.deepEqual(withSecrets(asked), [])
  })
  it('the browser reported no errors', () => assert.deepEqual(complaints, []))
})
