/** The file pages, against a real Berth: the list, a file, pins, groups and gateways. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { base36 } from 'multiformats/bases/base36'
import { CID } from 'multiformats/cid'
import { uuidv7 } from 'uuidv7'
import { until } from '../../test/support/processes.ts'
import { HOST_MS, noteShown, openDashboard, sender } from './support.ts'

const { url, own, page, complaints, signIn, look, sql } = await openDashboard()
const { api } = own
const send = sender(url, api)
await signIn()

const ROWS = 10_000

describe('the list of files', () => {
  it('a list of 10,000 files scrolls with only the visible rows in the page', async () => {
    const { cid } = await send([{ name: 'row', bytes: `rows of ${own.id}` }], { network: 'public' })
    // All files have the same content, so their pins exist.
    await sql(
      `INSERT INTO file (id, workspace_id, network, status, cid, cid_v1, name, keyvalues, host_nodes, size,
         number_of_files, mime_type)
       SELECT id, $1, 'public', 'pinned', $3, $3, 'row ' || lpad(i::text, 5, '0'), '{}', '{}', i, 1,
         CASE WHEN i % 2 = 0 THEN 'image/png' ELSE 'text/plain' END
       FROM unnest($2::uuid[]) WITH ORDINALITY AS made (id, i)`,
      [own.id, Array.from({ length: ROWS }, () => uuidv7()), cid],
    )
    await page.goto(`${url}/dashboard/files`)
    await page.getByRole('link', { name: 'row 10000' }).waitFor()
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write'], { origin: url })
    const row = page.getByRole('row', { name: 'row 10000' })
    const copy = row.getByRole('button', { name: 'Copy' })
    const isCopied = await noteShown(copy, 'Copied')
    await copy.click()
    await isCopied()
    assert.equal(await page.evaluate('navigator.clipboard.readText()'), cid)
    const last = page.getByRole('link', { name: 'row 00001' })
    const most = await until(
      'the last file is in sight',
      async () => {
        const rows = await page.evaluate(() => {
          scrollTo(0, document.body.scrollHeight)
          return document.querySelectorAll('[role=row]').length
        })
        assert.ok(rows < 100, `${rows} rows`)
        return (await last.isVisible()) && rows
      },
      4 * HOST_MS,
    )
    assert.ok(most > 10)
  })
})

describe('a file', () => {
  it('files are found by name, type and group, moved into a group and deleted together', async () => {
    await page.goto(`${url}/dashboard/files/groups`)
    await page.getByText('No groups yet').waitFor()
    await look('groups-none')
    await page.getByRole('button', { name: 'New group' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Name').fill('Catalogues')
    await dialog.getByRole('button', { name: 'New group' }).click()
    await page.getByRole('button', { name: 'Edit Catalogues' }).click()
    await dialog.getByLabel('Name').fill('Spring')
    await dialog.getByRole('checkbox').check()
    await dialog.getByRole('button', { name: 'Save' }).click()
    await page.getByText(/^public ·/).waitFor()
    await look('groups')
    await page.getByRole('button', { name: 'Private' }).click()
    await page.getByText('No groups yet').waitFor()
    await page.reload()
    await page.getByText('No groups yet').waitFor()

    await page.goto(`${url}/dashboard/files`)
    await page.getByRole('searchbox').fill('row 0000')
    await page.getByLabel('Type').selectOption('image/png')
    await page.getByRole('link', { name: 'row 00001' }).waitFor({ state: 'detached' })
    await page.getByRole('checkbox', { name: 'Select row 00002' }).check()
    await page.getByRole('checkbox', { name: 'Select row 00004' }).check()
    await page.getByRole('button', { name: 'Add to a group' }).click()
    await dialog.getByLabel('Group', { exact: true }).selectOption('Spring')
    await dialog.getByRole('button', { name: 'Add to a group' }).click()
    await dialog.waitFor({ state: 'detached' })
    await page.getByLabel('Group', { exact: true }).selectOption('Spring')
    await page.getByRole('link', { name: 'row 00006' }).waitFor({ state: 'detached' })
    await page.getByRole('link', { name: 'row 00002' }).waitFor()
    assert.match(page.url(), /group=/)
    assert.equal(await page.getByRole('searchbox').inputValue(), 'row 0000')
    await page.getByRole('checkbox', { name: 'Select all' }).check()
    await look('files-selected')
    await page.getByRole('button', { name: 'Delete' }).click()
    await dialog.getByLabel('Type “2 files”').fill('2 files')
    await dialog.getByRole('button', { name: 'Delete' }).click()
    await page.getByText('No matching files').waitFor()
    // The link to all files also clears the search.
    await page.getByRole('navigation', { name: 'Files' }).getByRole('link', { name: 'Files' }).click()
    await page.waitForFunction(
      () => document.querySelector<HTMLInputElement>('input[type=search]')?.value === '',
    )
    await page.waitForURL(`${url}/dashboard/files`)
    await page.goto(`${url}/dashboard/files/groups`)
    await page.getByRole('button', { name: 'Delete Spring' }).click()
    await dialog.getByRole('button', { name: 'Delete' }).click()
    await page.getByText('No groups yet').waitFor()
  })
  it('a gateway gets a domain, a token shown once, and analytics', async () => {
    const domain = `test-${own.id.slice(-12)}`
    await page.goto(`${url}/dashboard/files/gateways`)
    await page.getByText('Hosts that serve').waitFor()
    await page.getByRole('button', { name: 'New gateway' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Name').fill(domain)
    await dialog.getByRole('button', { name: 'New gateway' }).click()
    await page.getByRole('link', { name: domain, exact: true }).click()
    await page.getByRole('button', { name: 'New token' }).click()
    const token = (await dialog.locator('.font-mono').innerText()).trim()
    await look('gateway-token')
    await dialog.getByRole('button', { name: 'Close' }).click()
    await page.reload()
    await page.getByRole('button', { name: 'Revoke' }).waitFor()
    assert.ok(!(await page.content()).includes(token))
    await page.setViewportSize({ width: 390, height: 780 })
    assert.ok(await page.evaluate('document.documentElement.scrollWidth <= innerWidth'))
    await page.setViewportSize({ width: 1280, height: 800 })
    await page.getByRole('button', { name: 'Revoke' }).click()
    await dialog.getByText('from now on anyone can read public files here').waitFor()
    await dialog.getByRole('button', { name: 'Revoke' }).click()
    await page.getByText('Anyone can read public files here').waitFor()
    await page.getByLabel('Content inside public files').check()
    await page.getByLabel('Domain', { exact: true }).fill(`files-${own.id.slice(-12)}.example.org`)
    await page.getByRole('button', { name: 'Add', exact: true }).click()
    await page.getByText('TXT', { exact: true }).waitFor()
    const { cid } = await send([{ name: 'served.txt', bytes: `served by ${own.id}` }], { network: 'public' })
    const { host, origin } = new URL(url)
    const served = `${origin.replace(host, `${domain}.gateway.localhost`)}:${new URL(url).port}/ipfs/${cid}`
    const opened = page.context().waitForEvent('page')
    await page.evaluate((src) => window.open(src, '_blank', 'noopener'), served)
    const tab = await opened
    await tab.getByText(`served by ${own.id}`).waitFor()
    // In the background the page would render only once a second.
    await tab.close()
    await until('the request is counted', async () => {
      const query = { gateway_domain: domain, by: 'file_name' }
      return (await api.get('/v3/analytics/gateways/top', query)).body.data.length > 0
    })
    await page.reload()
    await page.getByText('served.txt').waitFor()
    await look('gateway')
    const id = new URL(page.url()).pathname.split('/').at(-1)
    const { data } = (await api.get(`/v3/gateways/${id}`)).body
    assert.deepEqual([data.domain, data.inner_cids, data.restrict], [domain, true, false])
    await page.getByRole('button', { name: 'Remove' }).click()
    await dialog.getByRole('button', { name: 'Remove' }).click()
    await page.getByText('Your own domain can lead here').waitFor()
  })
  it('the list and the palette find a file by its CID in any encoding, and by a URL', async () => {
    const { cid } = await send([{ name: 'found.txt', bytes: `found of ${own.id}` }], { network: 'private' })
    await page.goto(`${url}/dashboard/files?network=private`)
    for (const pasted of [
      ` ${cid} `,
      `ipfs://${CID.parse(cid).toString(base36)}/`,
      `https://a.example/ipfs/${cid}?a`,
    ]) {
      await page.getByRole('searchbox').fill(pasted)
      await page.getByRole('link', { name: 'found.txt' }).waitFor()
      await page.keyboard.press('Control+k')
      await page.getByPlaceholder('Go to a page').fill(pasted)
      await page.getByRole('option', { name: 'found.txt' }).waitFor()
      await page.keyboard.press('Escape')
      await page.getByRole('searchbox').fill('film')
      await page.getByRole('link', { name: 'found.txt' }).waitFor({ state: 'detached' })
    }
  })
  it('the page of a missing file says so under a heading', async () => {
    await page.goto(`${url}/dashboard/files/public/00000000-0000-7000-8000-000000000000`)
    await page.getByRole('heading', { name: 'This file cannot be shown' }).waitFor()
    await look('file-lost')
  })
  it('a file is renamed, gets metadata and links, and is swapped and swapped back', async () => {
    const first = await send([{ name: 'first.txt', bytes: `first of ${own.id}` }], { network: 'public' })
    const second = await send([{ name: 'second.txt', bytes: `second of ${own.id}` }], { network: 'public' })
    const missing: string[] = []
    page.on('response', (answer) => answer.status() === 404 && missing.push(answer.url()))
    await page.goto(`${url}/dashboard/files/public/${first.id}`)
    await page.frameLocator('iframe').getByText(`first of ${own.id}`).waitFor()
    assert.deepEqual(missing, [])
    page.removeAllListeners('response')
    await page.getByRole('button', { name: 'Rename' }).click()
    await look('file-rename')
    await page.keyboard.press('Escape')
    await page.getByRole('button', { name: 'Rename' }).click()
    await page.getByLabel('Name').fill('renamed.txt')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('heading', { name: 'renamed.txt' }).waitFor()
    await page.getByRole('button', { name: 'Save' }).waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'Add a pair' }).click()
    // A value without a key is not saved.
    await page.getByLabel('Value 1').fill('spring')
    await page.getByRole('button', { name: 'Save' }).click()
    assert.ok(await page.getByLabel('Key 1').evaluate((key) => key === document.activeElement))
    await page.keyboard.type('season')
    await page.getByRole('button', { name: 'Add a pair' }).click()
    await page.keyboard.type('season')
    await page.getByText('The key season appears twice.').waitFor()
    assert.ok(await page.getByRole('button', { name: 'Save' }).isDisabled())
    await page.getByRole('button', { name: 'Remove season' }).last().click()
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('button', { name: 'Save' }).waitFor({ state: 'detached' })
    await page.frameLocator('iframe').getByText(`first of ${own.id}`).waitFor()
    await page.getByLabel('CID to serve instead').fill(second.cid)
    await page.getByRole('button', { name: 'Swap' }).click()
    await page.getByText('Served in its place').waitFor()
    await page.frameLocator('iframe').getByText(`second of ${own.id}`).waitFor()
    await look('file')
    assert.ok(await page.evaluate('document.documentElement.scrollWidth <= innerWidth'))
    await page.getByRole('button', { name: 'Undo the swap' }).click()
    await page.getByRole('listitem').getByText('undone').waitFor()
    await page.frameLocator('iframe').getByText(`first of ${own.id}`).waitFor()
    const { body } = await api.get(`/v3/files/public/${first.id}`)
    assert.deepEqual([body.data.name, body.data.keyvalues], ['renamed.txt', { season: 'spring' }])
    await page.getByRole('button', { name: 'Delete' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('button', { name: 'Delete' }).click()
    await page.getByRole('heading', { name: 'Files' }).waitFor()
    assert.equal((await api.get(`/v3/files/public/${first.id}`)).status, 404)
  })
})

describe('a private file', () => {
  it('a private link is created for the chosen time, and shown until another time is chosen', async () => {
    const { id } = await send([{ name: 'hidden.txt', bytes: `hidden by ${own.id}` }], { network: 'private' })
    await page.goto(`${url}/dashboard/files/private/${id}`)
    await page.getByRole('button', { name: 'Create a link' }).click()
    const link = page.getByRole('link', { name: /X-Expires=3600/ })
    await link.waitFor()
    await page.getByLabel('Valid for').selectOption('7 days')
    await link.waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'Create a link' }).click()
    await page.getByRole('link', { name: /X-Expires=604800/ }).waitFor()
  })
})

describe('everything', () => {
  it('the browser reported no errors', () => assert.deepEqual(complaints.splice(0), []))
})
