/** The overview, the shell, and attacks on them, in a real browser. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { gzipSync } from 'node:zlib'
import { inlineCid } from '../../test/contract/context.ts'
import { HOSTILE, noteShown, openDashboard, withSecrets } from './support.ts'

const dashboard = await openDashboard()
const { url, anonymous, own, page, complaints, asked, newPage, signIn, untilAged, look } = dashboard
const MAX_SCRIPT_BYTES = 250_000
/** No node has this CID, so its pin stays pending. */
const ABSENT = 'bafkreifzjut3te7nhyekklss27nh3k72ysco7y32koao5eei66wof36n5e'

const open = (path: string, on = page) => on.goto(`${url}/dashboard${path}`)
const dialog = (on = page) => on.getByRole('dialog')

describe('the shell', () => {
  it('the root leads to the dashboard, whose first page has at most 250 KB of scripts', async (t) => {
    await page.goto(url)
    await page.getByText('npx berth login-link').waitFor()
    assert.equal(new URL(page.url()).pathname, '/dashboard')
    await signIn()
    await open('')
    await page.getByText('Nothing has run yet.').waitFor()
    const scripts = await page.evaluate(() =>
      performance.getEntriesByType('resource').flatMap(({ name }) => (name.endsWith('.js') ? [name] : [])),
    )
    assert.ok(scripts.length > 0)
    const sizes = await Promise.all(
      scripts.map(async (script) => gzipSync(Buffer.from(await (await fetch(script)).arrayBuffer())).length),
    )
    const total = sizes.reduce((sum, size) => sum + size, 0)
    const shown = await page.evaluate(() => {
      const [{ domInteractive }] = performance.getEntriesByType('navigation') as [PerformanceNavigationTiming]
      const paints = performance.getEntriesByName('first-contentful-paint')
      return { domInteractive, painted: paints[0]?.startTime ?? 0 }
    })
    t.diagnostic(
      `${scripts.length} scripts, ${total} bytes gzipped; interactive after ${Math.round(shown.domInteractive)} ms, painted after ${Math.round(shown.painted)} ms`,
    )
    assert.ok(total <= MAX_SCRIPT_BYTES, `${total} bytes`)
    await look('overview-empty')
  })
  it('a page has a title, and navigation moves the focus to its heading', async () => {
    await page.getByRole('link', { name: 'Operate', exact: true }).click()
    await page.getByRole('heading', { name: 'Operate' }).waitFor()
    await page.waitForFunction(() => document.activeElement?.textContent === 'Operate')
    await page.waitForURL('**/operate/operations')
    await page.waitForFunction(() => document.title === 'Operations · Operate · Berth')
  })
  it('a page below a tab has the title of that tab', async () => {
    await open('/operate/operations/00000000-0000-7000-8000-000000000000')
    await page.getByRole('alert').waitFor()
    assert.equal(await page.title(), 'Operations · Operate · Berth')
  })
  it('closing a dialog in any way returns the focus to the button that opened it', async () => {
    const has = (name: string) =>
      page.waitForFunction((name) => document.activeElement?.textContent === name, name)
    await open('/operate/keys')
    for (const close of ['Cancel', 'Create the key']) {
      await page.getByRole('button', { name: 'New API key' }).click()
      await dialog().getByLabel('Name', { exact: true }).fill('focus')
      await dialog().getByRole('button', { name: close }).click()
      if (close !== 'Cancel') await dialog().getByRole('button', { name: 'I have it' }).click()
      await dialog().waitFor({ state: 'detached' })
      await has('New API key')
    }
    // The dialog's action removes the button that opened the dialog.
    await page.getByRole('row', { name: 'focus' }).getByRole('button', { name: 'Revoke' }).click()
    await dialog().getByRole('button', { name: 'Revoke' }).click()
    await dialog().waitFor({ state: 'detached' })
    await has('Operate')
  })
  it('copying works in browsers without a clipboard for pages', async () => {
    const on = await newPage()
    await on.addInitScript(() =>
      Object.defineProperty(Navigator.prototype, 'clipboard', { get: () => undefined, configurable: true }),
    )
    await on.goto(url)
    const copy = on.getByRole('button', { name: 'Copy' })
    const isCopied = await noteShown(copy, 'Copied')
    await copy.click()
    await isCopied()
    await on.context().close()
  })
  it('an unknown address shows a page that says so', async () => {
    await open('/nowhere/at/all')
    await page.getByRole('heading', { name: 'Page not found' }).waitFor()
    await look('not-found')
    await page.getByRole('link', { name: 'Go to the overview' }).click()
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
  })
  it('the palette finds and opens pages with only the keyboard', async () => {
    await page.keyboard.press('Control+k')
    await dialog().getByPlaceholder('Go to a page').waitFor()
    await page.keyboard.type('webhoo')
    await dialog().getByRole('option', { name: 'Overview' }).waitFor({ state: 'detached' })
    await dialog().getByRole('option', { name: 'Operate: Webhooks' }).waitFor()
    await look('palette')
    await page.keyboard.type('zzzz')
    await dialog().getByText('Nothing matches your search.').waitFor()
    await look('palette-empty')
    for (let i = 0; i < 4; i++) await page.keyboard.press('Backspace')
    await dialog().getByRole('option', { name: 'Operate: Webhooks' }).waitFor()
    await page.keyboard.press('Enter')
    await page.getByText('No webhooks yet').waitFor()
    await page.keyboard.press('Control+k')
    await dialog().waitFor()
    await page.keyboard.press('Escape')
    await dialog().waitFor({ state: 'detached' })
  })
  it('keyboard shortcuts open pages, and ? lists them', async () => {
    await page.keyboard.press('?')
    await dialog().getByText('Go to Agents').waitFor()
    await look('keyboard')
    await page.keyboard.press('Escape')
    await dialog().waitFor({ state: 'detached' })
    // The second key has to follow within a moment.
    await Promise.all([page.keyboard.press('g'), page.keyboard.press('a')])
    await page.getByRole('heading', { name: 'Agents', exact: true }).waitFor()
    await Promise.all([page.keyboard.press('g'), page.keyboard.press('o')])
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
  })
  it('the chosen colours survive a reload', async () => {
    const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor)
    const light = await background()
    await page.getByRole('button', { name: 'Dark' }).click()
    const dark = await background()
    assert.notEqual(dark, light)
    await page.reload()
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
    assert.equal(await background(), dark)
    await page.getByRole('button', { name: 'Same as the system' }).click()
    assert.equal(await background(), light)
  })
})

describe('the overview', () => {
  it('events appear without a reload, and refetch only the data that they are about', async () => {
    // The page polls some data every half minute, even without events. That may be due during the test.
    const quiet = await page.addInitScript(() => {
      const repeat = setInterval
      const often = (run: () => void, ms: number) => (ms < 30_000 ? repeat(run, ms) : undefined)
      Object.assign(window, { setInterval: often })
    })
    await untilAged()
    await open('')
    await page.getByText('Nothing has run yet.').waitFor()
    await page.getByText('0 requests').waitFor()
    asked.length = 0
    const { operation } = await own.api.pin({
      cid: inlineCid(`seen by ${own.name}`).toString(),
      name: 'Seen',
    })
    await own.api.finished(operation)
    await page.getByText('Seen was pinned').waitFor()
    await page.getByText('Pin a CID').first().waitFor()
    await page.getByText('1 file').waitFor()
    assert.ok(asked.some((address) => address.includes('/v0/operations')))
    assert.deepEqual(
      asked.filter((address) => /\/v0\/(agents|me)|analytics|readyz/.test(address)),
      [],
    )
    await quiet.dispose()
    await look('overview-used')
  })
  it('events before the event stream opens are shown, however long that takes', async () => {
    const stream = /\/v0\/events\?/
    const opens = Promise.withResolvers<void>()
    await page.route(stream, async (route) => {
      await opens.promise
      await route.continue().catch(() => {})
    })
    await open('/files')
    await page.getByRole('link', { name: 'Seen' }).waitFor()
    const cid = `${inlineCid(`late of ${own.name}`)}`
    const { operation } = await own.api.pin({ cid, name: 'Late' })
    await own.api.finished(operation)
    await untilAged()
    opens.resolve()
    await page.getByRole('link', { name: 'Late' }).waitFor()
    await page.unrouteAll({ behavior: 'ignoreErrors' })
    await open('')
  })
  it('events from before the page opened are shown, even in a new Berth', async () => {
    await page.reload()
    await page.getByText('Seen was pinned').waitFor()
  })
  it('a pending pin is shown with its current step', async () => {
    await own.api.pin({ cid: ABSENT, name: 'Absent' })
    await page.getByText('looking for nodes that have it').waitFor()
  })
  it('an interrupted stream is reported, and resumes after the last event seen', async () => {
    const resumed = page.waitForRequest(
      (request) => request.url().includes('/v0/events') && request.headers()['last-event-id'] !== undefined,
    )
    await page.context().setOffline(true)
    await page.getByText('Berth cannot be reached.').waitFor()
    await look('offline')
    const { status } = await own.api.post('/v3/groups/public', { name: 'made meanwhile' })
    assert.equal(status, 200)
    const isBack = await noteShown(page.locator('body'), 'Connected again. Everything is up to date.')
    await page.context().setOffline(false)
    await isBack()
    await page.getByText('made meanwhile was created').waitFor()
    await own.api.post('/v3/groups/public', { name: 'made meanwhile' })
    await page.getByText('made meanwhile was created, 2 times').waitFor()
    assert.match((await resumed).headers()['last-event-id'] ?? '', /^\d+$/)
  })
})

describe('attacks', () => {
  it('names with markup are shown as text and run nothing', async () => {
    const hostile = `${HOSTILE}${own.id}`
    assert.equal(
      (await own.api.post('/v3/pinata/keys', { keyName: HOSTILE, permissions: { admin: true } })).status,
      200,
    )
    assert.equal((await own.api.post('/v3/groups/public', { name: HOSTILE })).status, 200)
    const invited = await own.api.post(`/v0/workspaces/${own.id}/invitations`, { role: 'viewer' })
    const accepted = { token: invited.body.data.token, name: hostile }
    assert.equal((await anonymous.post('/v0/invitations/accept', accepted)).status, 201)
    const rename = (name: string) => own.api.request('PATCH', `/v0/workspaces/${own.id}`, { json: { name } })
    assert.equal((await rename(hostile)).status, 200)
    await open('')
    await page.locator('header').getByText(hostile).waitFor({ state: 'attached' })
    await own.api.pin({ cid: inlineCid(own.id).toString(), name: HOSTILE })
    await page.locator('main').getByText(`${HOSTILE} was pinned`).waitFor()
    assert.equal(await page.evaluate('window.ran'), undefined)
    for (const [path, shown] of [
      ['/operate/operations', 'Pin a CID'],
      ['/operate/keys', HOSTILE],
      ['/operate/members', hostile],
      ['/operate/audit', 'renameWorkspace'],
      ['/operate/workspaces', hostile],
      [`/operate/operations/${encodeURIComponent(HOSTILE)}`, 'operation'],
      [
        `/operate/audit?action=${encodeURIComponent(HOSTILE)}&of=${encodeURIComponent(HOSTILE)}`,
        'No matching entries.',
      ],
      [`/${encodeURIComponent(HOSTILE)}`, 'Page not found'],
    ] as const) {
      await open(path)
      await page.locator('main').getByText(shown).filter({ visible: true }).first().waitFor()
      await page.locator('header').getByText(hostile).waitFor({ state: 'attached' })
      assert.equal(await page.evaluate('window.ran'), undefined, path)
    }
    await page.keyboard.press('Control+k')
    await dialog().getByPlaceholder('Go to a page').fill('<img')
    await dialog().getByRole('option').filter({ hasText: HOSTILE }).waitFor()
    assert.equal(await page.evaluate('window.ran'), undefined)
    await page.keyboard.press('Escape')
    assert.equal((await rename(own.name)).status, 200)
  })
  it('no page may be framed', async () => {
    for (const path of ['/login', '/dashboard', '/dashboard/operate/keys']) {
      const { headers } = await fetch(`${url}${path}`)
      assert.match(headers.get('content-security-policy') ?? '', /frame-ancestors 'none'/, path)
    }
    const other = await (await newPage()).context().newPage()
    await other.setContent(`<iframe src="${url}/dashboard"></iframe>`)
    const framed = await other.waitForSelector('iframe')
    const frame = await framed.contentFrame()
    assert.equal(await frame?.locator('#root').count(), 0)
    await other.context().close()
  })
  it('the sign-in page never redirects elsewhere, whatever its URL says', async () => {
    const on = await newPage()
    const query = '?next=https://example.org&redirect=//example.org&returnTo=javascript:alert(1)'
    await on.goto((await dashboard.link()).replace('/login#', `/login${query}#`))
    await on.getByRole('button', { name: 'Sign in' }).click()
    await on.getByRole('heading', { name: 'Overview' }).waitFor()
    assert.equal(on.url(), `${url}/dashboard`)
    await on.context().close()
    for (const path of ['//example.org/dashboard', '/dashboard//example.org', '/login/../..//example.org']) {
      const { status, headers } = await fetch(`${url}${path}`, { redirect: 'manual' })
      assert.ok(!/example\.org/.test(headers.get('location') ?? ''), `${path}: ${status}`)
    }
  })
  it('no URL requested by a page contains a token, a secret or a key', () => {
    assert.ok(asked.length > 100)
    assert.deepEqual(withSecrets(asked), [])
  })
  it('pages fit on a phone', async () => {
    await page.setViewportSize({ width: 390, height: 780 })
    for (const path of [
      '',
      '/operate/operations',
      '/operate/keys',
      '/operate/members',
      '/operate/webhooks',
      '/operate/audit',
      '/spending',
      '/operate/workspaces',
    ]) {
      await open(path)
      await page.locator('main h1').waitFor()
      const [wide, width] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth])
      const outside = await page.evaluate(() =>
        [...document.querySelectorAll('main *, header *')]
          .filter((one) => one.getBoundingClientRect().right > innerWidth + 1)
          .map((one) => one.outerHTML.slice(0, 150)),
      )
      assert.ok(
        (wide ?? 0) <= (width ?? 0),
        `${path}: ${wide} of ${width}: ${outside.slice(0, 5).join('\n')}`,
      )
    }
  })
  it('the browser reported no errors', () => assert.deepEqual(complaints, []))
})
