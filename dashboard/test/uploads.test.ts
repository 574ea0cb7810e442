/** Uploads from the dashboard, against a real Berth: chosen and dropped, on the file page and elsewhere. */
import assert from 'node:assert/strict'
import { mkdir, mkdtemp, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { until } from '../../test/support/processes.ts'
import { colorsAcross, dropFile, openDashboard, sender } from './support.ts'

const { url, env, own, page, complaints, newPage, signIn, look, sql } = await openDashboard()
const { api } = own
const send = sender(url, api)
await signIn()

const MIB = 1_048_576
const KIB = 1024
const folder = await mkdtemp(join(tmpdir(), 'berth-folder-'))
after(() => rm(folder, { recursive: true }))

/** Drops a file on the page, outside the drop area. */
const drop = (path: string) => dropFile(page, page.getByRole('heading', { name: 'Files' }), path)
const onPlan = async (plan: string) => {
  await sql('UPDATE workspace SET plan = $2 WHERE id = $1', [own.id, plan])
  // Otherwise web processes notice only after seconds.
  await sql(`SELECT pg_notify('berth_api_key', $1)`, [own.id])
}

describe('uploads', () => {
  it('a paused, interrupted and resumed folder of 2,000 files gets the CID of a server import', async () => {
    const files = Array.from({ length: 2000 }, (_, i) => ({
      // The names are so long that the folder is sharded.
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
    // Slow enough that any machine can pause the upload in time.
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
    await row.getByText('Offline: resumes automatically').waitFor()
    assert.equal(await share(), paused)
    // The bar disappears when everything is sent.
    const bar = await progress.elementHandle()
    await limit(MIB)
    await page.waitForFunction(
      ([bar, before]) => (bar as HTMLProgressElement).value > Number(before),
      [bar, paused],
    )
    await limit(-1)
    await row.getByText('Done, with the CID computed here').waitFor()
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
  it('a private upload resumes after a reload where it stopped', async () => {
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
    // Bytes that the browser has sent may not have arrived yet. A HEAD request would interrupt the upload.
    const id = (await begun).headers().location?.split('/').at(-2)
    const arrived = join(`${env.BERTH_DATA_DIR}`, 'uploads', `${id}`)
    await until('some of it has arrived', async () => (await stat(arrived)).size > 0)
    await page.getByRole('button', { name: 'Pause film.bin' }).click()
    await page.getByText('Paused').waitFor()
    await page.getByRole('link', { name: 'Overview' }).click()
    const elsewhere = page.getByRole('link', { name: 'Uploading: 0 of 1 done' })
    await elsewhere.waitFor()
    await look('overview-uploading')
    await elsewhere.click()
    await page.getByText('Paused').waitFor()
    await page.getByRole('button', { name: 'Private' }).click()
    page.once('dialog', (dialog) => dialog.accept())
    await page.reload()
    await limit(-1)
    const sent: string[] = []
    page.on('request', (request) =>
      sent.push(`${request.method()} ${request.headers()['upload-offset'] ?? ''}`),
    )
    await input.setInputFiles(path)
    await page.getByText('Done, with the CID computed here').waitFor()
    page.removeAllListeners('request')
    assert.ok(!sent.some((one) => one.startsWith('POST') || one === 'PATCH 0'), sent.join())
    await network.detach()
  })
  it('a file dropped on another page goes to the chosen network', async () => {
    const path = join(folder, 'photo.txt')
    await writeFile(path, `a photo of ${own.id}`)
    await page.goto(`${url}/dashboard`)
    await dropFile(page, page.getByRole('heading', { name: 'Overview' }), path)
    const dialog = page.getByRole('dialog', { name: 'Upload photo.txt?' })
    await dialog.getByLabel('Network').selectOption('Private')
    await look('overview-drop')
    await dialog.getByRole('button', { name: 'Upload' }).click()
    await page.getByRole('link', { name: 'Uploaded 1' }).waitFor()
    assert.equal(page.url(), `${url}/dashboard`)
    assert.equal((await api.get('/v3/files/private', { name: 'photo.txt' })).body.data.files.length, 1)
  })
  it('a file dropped by a viewer does not replace the page', async () => {
    const { name } = await own.member('viewer')
    const on = await newPage()
    await signIn(on, name)
    await dropFile(on, on.getByRole('heading', { name: 'Overview' }), join(folder, 'photo.txt'))
    await on.getByRole('heading', { name: 'Overview' }).waitFor()
    assert.equal(on.url(), `${url}/dashboard`)
    await on.context().close()
  })
  it('a file too large for the plan is refused before anything is sent', async () => {
    await sql(
      `INSERT INTO plan (name, channels, custom_domains, pin_by_cid, max_file_bytes, storage_bytes)
       VALUES ('files-small', true, true, true, 1000000, 1000000000000)`,
    )
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
  })
  it('a meter at half a percent looks empty in either colour scheme', async () => {
    // The previous test has restored its plan.
    await onPlan('files-small')
    const meter = page.locator('main meter')
    await until('the page knows the plan', async () => {
      await page.goto(`${url}/dashboard`)
      return meter.waitFor({ timeout: 5000 }).then(
        () => true,
        () => false,
      )
    })
    const lookAt = async (share: number) => {
      await meter.evaluate(
        (one: HTMLMeterElement, share) => Object.assign(one, { value: one.max * share }),
        share,
      )
      return (await colorsAcross(meter)).slice(8, -8)
    }
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme })
      const [empty, half] = [await lookAt(0.005), await lookAt(0.5)]
      assert.equal(new Set(empty).size, 1, `${colorScheme}: ${[...new Set(empty)]}`)
      assert.deepEqual([half.at(-1), half[0] === empty[0]], [empty[0], false], colorScheme)
    }
    await page.emulateMedia({ colorScheme: 'light' })
    await onPlan('unlimited')
  })
})

describe('everything', () => {
  it('the browser reported no errors', () => assert.deepEqual(complaints.splice(0), []))
})
