/**
 * The dashboard in a real browser, against a real Berth: each page's main job, hostile names, no violation of its policy,
 * none of accessibility. With DASHBOARD_SHOTS=<folder> it leaves pictures of the pages there.
 */
import assert from 'node:assert/strict'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import openapiTS, { astToString } from 'openapi-typescript'
import { type Browser, chromium, type Page } from 'playwright-core'
import { findBrowser } from '../../scripts/demo/browser.ts'
import { inlineCid, openContext } from '../../test/contract/context.ts'

const { url, berth, workspace, anonymous } = await openContext()
const own = await workspace()
const AXE = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const HOSTILE = `<img src=x onerror="window.ran=1"><script>window.ran=1</script>`
const shots = process.env.DASHBOARD_SHOTS
const HOST_MS = 60_000

let browser: Browser
let page: Page
/** What the browser refused or complained about. */
const complaints: string[] = []

async function newPage(): Promise<Page> {
  const context = await browser.newContext({
    viewport: { width: 1280, height: 800 },
    reducedMotion: 'reduce',
  })
  const page = await context.newPage()
  page.setDefaultTimeout(HOST_MS)
  page.on('request', (request) => {
    if (new URL(request.url()).origin !== new URL(url).origin) complaints.push(`asked ${request.url()}`)
  })
  page.on('pageerror', (error) => complaints.push(error.message))
  page.on('console', (line) => {
    if (/Content.Security.Policy/i.test(line.text())) complaints.push(line.text())
  })
  return page
}

const link = async () => (await berth('login-link', '-w', own.name)).trim()

/** The page has no violation, in either colour scheme, and its pictures are taken. */
async function look(name: string): Promise<void> {
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme })
    await page.evaluate(AXE)
    const found = await page.evaluate(async () => {
      const { axe } = globalThis as unknown as { axe: { run(): Promise<{ violations: any[] }> } }
      const { violations } = await axe.run()
      return violations.map(({ id, nodes }) => `${id}: ${nodes.map((node: any) => node.html).join(' ')}`)
    })
    assert.deepEqual(found, [], `${name}, ${colorScheme}`)
    if (shots) await page.screenshot({ path: join(shots, `${name}-${colorScheme}.png`) })
  }
  if (!shots) return
  await page.setViewportSize({ width: 390, height: 780 })
  await page.screenshot({ path: join(shots, `${name}-phone.png`) })
  await page.setViewportSize({ width: 1280, height: 800 })
  await page.emulateMedia({ colorScheme: 'light' })
}

describe('the dashboard', () => {
  before(async () => {
    if (shots) await mkdir(shots, { recursive: true })
    const executablePath = await findBrowser()
    assert.ok(executablePath, 'there is no Chromium or Chrome here: apt-get install chromium')
    const args = ['--no-proxy-server', ...(process.getuid?.() === 0 ? ['--no-sandbox'] : [])]
    browser = await chromium.launch({ executablePath, args })
    page = await newPage()
  })
  after(() => browser?.close())

  it('the types of the client are those of /openapi.json', async () => {
    const made = astToString(await openapiTS(anonymous.document as never))
    const types = new URL('../src/api/schema.ts', import.meta.url)
    if (process.env.BERTH_TEST_DOCS === 'write') await writeFile(types, made)
    assert.ok((await readFile(types, 'utf8')) === made, 'run `npm run docs:dashboard`')
  })
  it('its files are cached for good, its pages are not, and its policy allows nothing inline', async () => {
    const answer = await fetch(`${url}/dashboard/files`)
    const html = await answer.text()
    assert.equal(answer.headers.get('cache-control'), 'no-cache')
    const policy = answer.headers.get('content-security-policy') ?? ''
    assert.match(policy, /script-src 'self';.*frame-ancestors 'none'/)
    assert.doesNotMatch(policy, /unsafe/)
    const [, script = ''] = /src="([^"]+\.js)"/.exec(html) ?? []
    const asset = await fetch(`${url}${script}`)
    assert.match(asset.headers.get('cache-control') ?? '', /immutable/)
    assert.equal(asset.headers.get('content-encoding'), 'gzip')
    await asset.arrayBuffer()
    assert.equal((await fetch(`${url}/dashboard/assets/none.js`)).status, 404)
  })
  it('who is not signed in learns how to', async () => {
    await page.goto(`${url}/dashboard/files`)
    await page.getByText('npx berth login-link').waitFor()
    await look('login')
  })
  it('a link signs in by its button, once', async () => {
    const address = await link()
    await page.goto(address.replace(new URL(address).origin, url))
    const button = page.getByRole('button', { name: 'Sign in' })
    await button.waitFor()
    assert.equal(new URL(page.url()).hash, '')
    await button.click()
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
    const other = await newPage()
    await other.goto(address.replace(new URL(address).origin, url))
    await other.getByRole('button', { name: 'Sign in' }).click()
    await other.getByRole('alert').getByText('The link was used or is too old').waitFor()
    await other.context().close()
  })
  it('files are uploaded, found and deleted', async () => {
    await page.getByRole('link', { name: 'Files', exact: true }).click()
    await page.getByText('No files yet').waitFor()
    const files = ['catalogue.txt', 'report.txt'].map((name) => ({
      name,
      mimeType: 'text/plain',
      buffer: Buffer.from(`${name} of ${own.name}`),
    }))
    await page.locator('input[type=file]').setInputFiles(files)
    await page.getByRole('cell', { name: 'report.txt' }).waitFor()
    await page.getByRole('searchbox').fill('catalog')
    await page.getByRole('cell', { name: 'report.txt' }).waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'Delete' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
    await page.getByText('No file has that in its name.').waitFor()
    await page.getByRole('searchbox').fill('')
    await page.getByRole('cell', { name: 'report.txt' }).waitFor()
  })
  it('a private file gets a link that reads it', async () => {
    assert.equal((await own.api.post('/v3/gateways', { domain: `test-${own.id.slice(-12)}` })).status, 200)
    await page.getByRole('button', { name: 'Private' }).click()
    await page
      .locator('input[type=file]')
      .setInputFiles([{ name: 'secret.txt', mimeType: 'text/plain', buffer: Buffer.from(own.id) }])
    await page.getByRole('button', { name: 'Link', exact: true }).click()
    await page.getByRole('button', { name: 'Make a link' }).click()
    await page.getByText(/^https?:.*\/files\/baf.*(signature|X-)/i).waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('button', { name: 'Public' }).click()
  })
  it('a CID is pinned, and seen until it is there', async () => {
    await page.getByRole('button', { name: 'Pin a CID' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('CID').fill('nonsense')
    await dialog.getByRole('button', { name: 'Pin a CID' }).click()
    await dialog.getByRole('alert').waitFor()
    await dialog.getByLabel('CID').fill(inlineCid(`pinned by ${own.name}`).toString())
    await dialog.getByLabel('Name (optional)').fill('pinned by hand')
    await dialog.getByRole('button', { name: 'Pin a CID' }).click()
    await page.getByText('pinned by hand').waitFor()
  })
  it('names with markup are shown as text and run nothing', async () => {
    const form = new FormData()
    form.set('network', 'public')
    form.set('name', HOSTILE)
    form.set('keyvalues', JSON.stringify({ [HOSTILE]: HOSTILE }))
    form.set('file', new Blob([HOSTILE]), 'a.html')
    const headers = { authorization: `Bearer ${own.api.key}` }
    const { status } = await fetch(`${url}/v3/files`, { method: 'POST', body: form, headers })
    assert.equal(status, 200)
    assert.equal(
      (await own.api.request('PATCH', `/v0/workspaces/${own.id}`, { json: { name: `${HOSTILE}${own.id}` } }))
        .status,
      200,
    )
    own.name = `${HOSTILE}${own.id}`
    await page.reload()
    await page.getByText(HOSTILE, { exact: true }).first().waitFor()
    await page.getByText(own.name).waitFor()
    assert.equal(await page.evaluate('window.ran'), undefined)
    await own.api.request('PATCH', `/v0/workspaces/${own.id}`, { json: { name: `Studio ${own.id}` } })
    own.name = `Studio ${own.id}`
    await page.reload()
    await page.getByRole('cell', { name: 'report.txt' }).waitFor()
    await look('files')
  })
  it('an agent is created, seen, and deleted by its name', async () => {
    await page.getByRole('link', { name: 'Agents', exact: true }).click()
    await page.getByText('No agents yet').waitFor()
    await look('agents-none')
    await page.getByRole('button', { name: 'New agent' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Name').fill('Archivist')
    await look('agents-new')
    await dialog.getByRole('button', { name: 'Create' }).click()
    await page.getByRole('heading', { name: 'Archivist' }).waitFor()
    await page.getByText('running').waitFor({ timeout: 2 * HOST_MS })
    await look('agents')
    await page.getByRole('link', { name: 'Overview' }).click()
    await page.getByText('1 running').waitFor()
    await page.getByText('agent.provision').waitFor()
    await look('overview')
    await page.getByRole('link', { name: 'Agents', exact: true }).click()
    await page.getByRole('button', { name: 'Delete' }).click()
    const sure = page.getByRole('dialog').getByRole('button', { name: 'Delete' })
    assert.ok(await sure.isDisabled())
    await page.getByRole('dialog').getByLabel('Name').fill('Archivist')
    await sure.click()
    await page.getByText('No agents yet').waitFor()
  })
  it('a change that another client made is seen without a reload', async () => {
    await page.getByRole('link', { name: 'Files', exact: true }).click()
    await page.getByRole('cell', { name: 'report.txt' }).waitFor()
    const { body } = await own.api.get('/v3/files/public', { name: 'report.txt' })
    await own.api.delete(`/v3/files/public/${body.data.files[0].id}`)
    await page.getByRole('cell', { name: 'report.txt' }).waitFor({ state: 'detached' })
  })
  it('a session that was ended leads to the sign-in', async () => {
    const { body } = await own.api.get('/v0/sessions')
    for (const { id } of body.data.sessions) await own.api.delete(`/v0/sessions/${id}`)
    await page.reload()
    await page.getByText('npx berth login-link').waitFor()
  })
  it('the browser complained of nothing', () => assert.deepEqual(complaints, []))
})
