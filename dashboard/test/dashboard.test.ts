/**
 * The dashboard in a real browser, against a real Berth: sign-in, files, hostile names, and no violations of its policy
 * or of accessibility rules. With DASHBOARD_SHOTS=<folder> it saves screenshots of the pages there.
 */
import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { describe, it } from 'node:test'
import openapiTS, { astToString } from 'openapi-typescript'
import { documentStamp } from '../../test/support/openapi.ts'
import { HOSTILE, openDashboard } from './support.ts'

const { url, anonymous, own, page, complaints, newPage, link, look } = await openDashboard()

describe('the dashboard', () => {
  it('the client’s types match /openapi.json', async () => {
    const { document } = anonymous
    const made = `${documentStamp(document)}\n${astToString(await openapiTS(document as never))}`
    const types = new URL('../../clients/typescript/src/schema.ts', import.meta.url)
    if (process.env.BERTH_TEST_DOCS === 'write') await writeFile(types, made)
    assert.ok((await readFile(types, 'utf8')) === made, 'run `npm run docs:dashboard`')
  })
  it('assets are cached forever, pages are not, and the policy allows nothing inline', async () => {
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
  it('a signed-out visitor sees how to sign in', async () => {
    await page.goto(`${url}/dashboard/files`)
    await page.getByText('npx berth login-link').waitFor()
    await look('login')
  })
  it('a sign-in link works once, by its button', async () => {
    const address = await link()
    await page.goto(address)
    const button = page.getByRole('button', { name: 'Sign in' })
    await button.waitFor()
    await page.waitForURL(({ hash }) => hash === '')
    await button.click()
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
    const other = await newPage()
    await other.goto(address)
    await other.getByRole('button', { name: 'Sign in' }).click()
    await other.getByRole('alert').getByText('The link was used or is too old').waitFor()
    await other.context().close()
  })
  it('files are uploaded and found', async () => {
    await page.getByRole('link', { name: 'Files', exact: true }).click()
    await page.getByText('No files yet').waitFor()
    const files = ['catalogue.txt', 'report.txt'].map((name) => ({
      name,
      mimeType: 'text/plain',
      buffer: Buffer.from(`${name} of ${own.name}`),
    }))
    await page.getByLabel('Choose files').setInputFiles(files)
    await page.getByRole('link', { name: 'report.txt' }).waitFor()
    const added = page.getByRole('row', { name: 'report.txt' }).locator('time')
    assert.equal(await added.textContent(), 'just now')
    assert.match((await added.getAttribute('title')) ?? '', /\d{4}, \d\d:\d\d:\d\d /)
    await page.getByRole('searchbox').fill('nothing like it')
    await page.getByRole('button', { name: 'Show all' }).click()
    await page.getByRole('link', { name: 'report.txt' }).waitFor()
    assert.equal(await page.getByRole('searchbox').inputValue(), '')
    await page.getByRole('searchbox').fill('catalog')
    await page.getByRole('link', { name: 'report.txt' }).waitFor({ state: 'detached' })
    await page.getByRole('searchbox').fill('')
    await page.getByRole('link', { name: 'report.txt' }).waitFor()
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
    await page.locator('header').getByText(own.name).waitFor({ state: 'attached' })
    assert.equal(await page.evaluate('window.ran'), undefined)
    await own.api.request('PATCH', `/v0/workspaces/${own.id}`, { json: { name: `Studio ${own.id}` } })
    own.name = `Studio ${own.id}`
    await page.reload()
    await page.getByRole('link', { name: 'report.txt' }).waitFor()
    await look('files')
  })
  it('a change by another client appears without a reload', async () => {
    await page.getByRole('link', { name: 'report.txt' }).waitFor()
    const { body } = await own.api.get('/v3/files/public', { name: 'report.txt' })
    await own.api.delete(`/v3/files/public/${body.data.files[0].id}`)
    await page.getByRole('link', { name: 'report.txt' }).waitFor({ state: 'detached' })
  })
  it('an ended session leads to the sign-in page', async () => {
    const { body } = await own.api.get('/v0/sessions')
    for (const { id } of body.data.sessions) await own.api.delete(`/v0/sessions/${id}`)
    await page.reload()
    await page.getByText('npx berth login-link').waitFor()
  })
  it('the browser reported no errors', () => assert.deepEqual(complaints, []))
})
