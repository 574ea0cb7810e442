/** The pages of files, against a real Berth: uploads of folders, the list, a file, pins, groups and gateways. */
import assert from 'node:assert/strict'
import { mkdir, mkdtemp, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { uuidv7 } from 'uuidv7'
import { until } from '../../test/support/processes.ts'
import { HOST_MS, noteShown, openDashboard } from './support.ts'

const { url, env, own, page, complaints, signIn, look, sql } = await openDashboard()
const { api } = own
await signIn()

const MIB = 1_048_576
const KIB = 1024
const ROWS = 10_000
const folder = await mkdtemp(join(tmpdir(), 'berth-folder-'))
after(() => rm(folder, { recursive: true }))

/** Sends files as a form, as any other client does. */
async function send(files: { name: string; bytes: Uint8Array | string }[], fields: Record<string, string>) {
  const form = new FormData()
  for (const [name, value] of Object.entries(fields)) form.set(name, value)
  for (const { name, bytes } of files) form.append('file', new Blob([bytes as BlobPart]), name)
  const headers = { authorization: `Bearer ${api.key}` }
  const answer = await fetch(`${url}/v3/files`, { method: 'POST', body: form, headers })
  const body = (await answer.json()) as { data: { id: string; cid: string } }
  assert.equal(answer.status, 200, JSON.stringify(body))
  return body.data
}

/** Drops it on the page, beside the area that says so. */
const drop = async (path: string) => {
  const client = await page.context().newCDPSession(page)
  const box = await page.getByRole('heading', { name: 'Files' }).boundingBox()
  assert.ok(box)
  const at = { x: box.x + box.width / 2, y: box.y + box.height / 2 }
  const data = { items: [], files: [path], dragOperationsMask: 1 }
  for (const type of ['dragEnter', 'dragOver', 'drop'] as const)
    await client.send('Input.dispatchDragEvent', { type, ...at, data })
  await client.detach()
}

describe('uploads', () => {
  it('a folder of 2,000 files is dropped, paused, cut off, gone on with, and has the CID of the server’s own import', async () => {
    const files = Array.from({ length: 2000 }, (_, i) => ({
      // Names so long that the folder has to be sharded.
      name: `${i}-${'n'.repeat(100)}.bin`,
      bytes: Buffer.alloc(4 * KIB, `${own.id} ${i} `),
    }))
    files.push({ name: 'inner/large.bin', bytes: Buffer.alloc(3 * MIB + 1, own.id) })
    files.push({ name: 'inner/deeper/empty.bin', bytes: Buffer.alloc(0) })
    await mkdir(join(folder, 'site/inner/deeper'), { recursive: true })
    await Promise.all(files.map(({ name, bytes }) => writeFile(join(folder, 'site', name), bytes)))
    const expected = await send(
      files.map(({ name, bytes }) => ({ name: `site/${name}`, bytes })),
      { network: 'private' },
    )

    await page.getByRole('link', { name: 'Files', exact: true }).click()
    await page.getByText('No files yet').waitFor()
    await page.getByText(/stored/).waitFor()
    await look('files-none')
    const network = await page.context().newCDPSession(page)
    const limit = (uploadThroughput: number, offline = false) =>
      network.send('Network.emulateNetworkConditions', {
        ...{ offline, latency: 0, downloadThroughput: -1, uploadThroughput },
      })
    // So slow that it is under way for long enough to be paused on any machine.
    await limit(MIB / 4)
    await drop(join(folder, 'site'))
    const progress = page.getByRole('progressbar', { name: 'Progress of site' })
    const share = () => progress.evaluate((bar) => (bar as HTMLProgressElement).value)
    await page.getByText(/^Sending [1-9]/).waitFor()
    const row = page.getByRole('region', { name: 'Uploads' })
    await row.getByText(expected.cid.slice(0, 10)).waitFor()
    await page.getByRole('button', { name: 'Pause site' }).click()
    await row.getByText('Paused').waitFor()
    await look('files-paused')
    const paused = await share()
    assert.ok(paused > 0 && paused < 1, `${paused}`)
    await limit(MIB, true)
    await page.getByRole('button', { name: 'Resume site' }).click()
    await row.getByText('Offline: goes on by itself').waitFor()
    assert.equal(await share(), paused)
    // It is gone when all is sent.
    const bar = await progress.elementHandle()
    await limit(MIB)
    await page.waitForFunction(
      ([bar, before]) => (bar as HTMLProgressElement).value > Number(before),
      [bar, paused],
    )
    await limit(-1)
    await row.getByText('Done, with the CID that was computed here').waitFor()
    await network.detach()
    const { body } = await api.get('/v3/files/public', { name: 'site' })
    const [file] = body.data.files
    assert.deepEqual(
      [file.cid, file.number_of_files, file.mime_type],
      [expected.cid, files.length, 'directory'],
    )
    await row.getByRole('link', { name: 'Open' }).click()
    await page.getByRole('heading', { name: 'site' }).waitFor()
    await page.getByText(expected.cid, { exact: true }).waitFor()
  })
  it('files of a private network are sent one by one, and again after a reload from where they were', async () => {
    await page.goto(`${url}/dashboard/files?network=private`)
    const network = await page.context().newCDPSession(page)
    const limit = (uploadThroughput: number) =>
      network.send('Network.emulateNetworkConditions', {
        ...{ offline: false, latency: 0, downloadThroughput: -1, uploadThroughput },
      })
    const path = join(folder, 'film.bin')
    await writeFile(path, Buffer.alloc(6 * MIB, `film of ${own.id}`))
    await limit(MIB / 4)
    const input = page.getByLabel('Choose files')
    const begun = page.waitForResponse((answer) => answer.request().method() === 'POST')
    await input.setInputFiles(path)
    await page.getByText(/^Sending [1-9]/).waitFor()
    // What the browser has sent may still be on its way. HEAD would have the upload make way for it.
    const id = (await begun).headers().location?.split('/').at(-2)
    const arrived = join(`${env.BERTH_DATA_DIR}`, 'uploads', `${id}`)
    await until('some of it has arrived', async () => (await stat(arrived)).size > 0)
    await page.getByRole('button', { name: 'Pause film.bin' }).click()
    await page.getByText('Paused').waitFor()
    page.once('dialog', (dialog) => dialog.accept())
    await page.reload()
    await limit(-1)
    const sent: string[] = []
    page.on('request', (request) =>
      sent.push(`${request.method()} ${request.headers()['upload-offset'] ?? ''}`),
    )
    await input.setInputFiles(path)
    await page.getByText('Done, with the CID that was computed here').waitFor()
    page.removeAllListeners('request')
    assert.ok(!sent.some((one) => one.startsWith('POST') || one === 'PATCH 0'), sent.join())
    await network.detach()
  })
  it('what the plan would refuse is said before anything is sent', async () => {
    await sql(
      `INSERT INTO plan (name, channels, custom_domains, pin_by_cid, max_file_bytes)
       VALUES ('files-small', true, true, true, 1000000)`,
    )
    const onPlan = async (plan: string) => {
      await sql('UPDATE workspace SET plan = $2 WHERE id = $1', [own.id, plan])
      // Else web processes read it within seconds.
      await sql(`SELECT pg_notify('berth_api_key', $1)`, [own.id])
    }
    await onPlan('files-small')
    after(() => onPlan('unlimited'))
    await page.goto(`${url}/dashboard/files`)
    await until('the page says so', async () => {
      await page.reload()
      await page.getByText(/stored/).waitFor()
      return page.getByText(/^Up to 1 MB each/).isVisible()
    })
    await page.getByLabel('Choose files').setInputFiles(join(folder, 'film.bin'))
    await page.getByRole('alert').getByText('film.bin is larger than the 1 MB').waitFor()
    await onPlan('unlimited')
  })
})

describe('the list', () => {
  it('10,000 files scroll, of which only those in sight are in the page', async () => {
    const { cid } = await send([{ name: 'row', bytes: `rows of ${own.id}` }], { network: 'public' })
    // All of one content, so that their pins are there.
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
  it('files are found by name, type and group, put into a group and deleted together', async () => {
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
    await page.getByRole('button', { name: 'Put into a group' }).click()
    await dialog.getByLabel('Group', { exact: true }).selectOption('Spring')
    await dialog.getByRole('button', { name: 'Put into a group' }).click()
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
    await page.getByText('No file is like that').waitFor()
    // A link to all files takes what is searched away as well.
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
  it('a gateway is created, restricted by a token that is shown once, given a domain, and says what it served', async () => {
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
    await dialog.getByText('from now on everybody reads public files here').waitFor()
    await dialog.getByRole('button', { name: 'Revoke' }).click()
    await page.getByText('Everybody reads public files here').waitFor()
    await page.getByLabel('What is within public files').check()
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
    // Behind another tab the page would draw once a second.
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
    await page.getByText('A name of your own can lead here').waitFor()
  })
  it('its name, metadata and links are changed and made, it is swapped and swapped back', async () => {
    const first = await send([{ name: 'first.txt', bytes: `first of ${own.id}` }], { network: 'public' })
    const second = await send([{ name: 'second.txt', bytes: `second of ${own.id}` }], { network: 'public' })
    await page.goto(`${url}/dashboard/files/public/${first.id}`)
    await page.getByRole('button', { name: 'Rename' }).click()
    await page.keyboard.press('Escape')
    await page.getByRole('button', { name: 'Rename' }).click()
    await page.getByLabel('Name').fill('renamed.txt')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('heading', { name: 'renamed.txt' }).waitFor()
    await page.getByRole('button', { name: 'Add a pair' }).click()
    // A value without a key is not saved.
    await page.getByLabel('Value 1').fill('spring')
    await page.getByRole('button', { name: 'Save' }).click()
    assert.ok(await page.getByLabel('Key 1').evaluate((key) => key === document.activeElement))
    await page.keyboard.type('season')
    await page.getByRole('button', { name: 'Add a pair' }).click()
    await page.keyboard.type('season')
    await page.getByText('The key season is there twice').waitFor()
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
    await page.getByRole('button', { name: 'Take back' }).click()
    await page.getByRole('listitem').getByText('taken back').waitFor()
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
  it('a link is made for the time that is chosen, and is shown until another one is', async () => {
    const { id } = await send([{ name: 'hidden.txt', bytes: `hidden by ${own.id}` }], { network: 'private' })
    await page.goto(`${url}/dashboard/files/private/${id}`)
    await page.getByRole('button', { name: 'Make a link' }).click()
    const link = page.getByRole('link', { name: /X-Expires=3600/ })
    await link.waitFor()
    await page.getByLabel('Good for').selectOption('7 days')
    await link.waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'Make a link' }).click()
    await page.getByRole('link', { name: /X-Expires=604800/ }).waitFor()
  })
})

describe('everything', () => {
  it('the browser complained of nothing', () => assert.deepEqual(complaints.splice(0), []))
})
