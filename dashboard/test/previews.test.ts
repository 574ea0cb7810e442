/** Previews of untrusted content: text, video, PDF, and content that tries to run scripts. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, it } from 'node:test'
import type { CID } from 'multiformats/cid'
import type { Frame } from 'playwright-core'
import { carHeader, carSection } from '../../src/storage/dag/car.ts'
import { writeDirectory, writeFile } from '../../src/storage/dag/unixfs-write.ts'
import type { Block } from '../../src/storage/port.ts'
import { until } from '../../test/support/processes.ts'
import { actionsOn, HOSTILE, openDashboard } from './support.ts'

const { url, own, page, complaints, asked, newPage, signIn, look } = await openDashboard({ isWhole: true })
await signIn()
const { ranNothing } = actionsOn(page)

/** Uploads a file or a folder, and opens its page. @returns the URL of the page */
async function open(
  files: { name: string; content: string | Uint8Array; type?: string }[],
  network = 'public',
  fields: Record<string, string> = {},
): Promise<string> {
  const form = new FormData()
  for (const [field, value] of Object.entries({ network, ...fields })) form.set(field, value)
  for (const { name, content, type = '' } of files)
    form.append('file', new Blob([content as BlobPart], { type }), name)
  const headers = { authorization: `Bearer ${own.api.key}` }
  const answer = await fetch(`${url}/v3/files`, { method: 'POST', body: form, headers })
  const body = (await answer.json()) as { data: { id: string } }
  assert.equal(answer.status, 200, JSON.stringify(body))
  const address = `${url}/dashboard/files/${network}/${body.data.id}`
  await page.goto(address)
  return address
}

/** Uploads a file, opens its page, and returns the frame of its preview. */
async function show(
  content: string | Uint8Array,
  name: string,
  type: string,
  network = 'public',
  fields: Record<string, string> = {},
): Promise<Frame> {
  await open([{ name, content, type }], network, fields)
  const frame = await (await page.locator('iframe').elementHandle())?.contentFrame()
  assert.ok(frame)
  await until('the preview is on its way', () => frame.url().startsWith('http'))
  return frame
}

/** Runs in the page: records a film of half a second or more, 160 by 120, as WebM in base64. */
async function recordFilm(): Promise<string> {
  const canvas = document.createElement('canvas')
  Object.assign(canvas, { width: 160, height: 120 })
  const paint = canvas.getContext('2d')
  const recorder = new MediaRecorder(canvas.captureStream(25), { mimeType: 'video/webm' })
  const parts: Blob[] = []
  recorder.ondataavailable = ({ data }) => data.size > 0 && parts.push(data)
  const ended = new Promise((resolve) => {
    recorder.onstop = resolve
  })
  recorder.start(100)
  // A busy machine may record the first frame long after it is painted.
  for (let i = 0; i < 15 || (parts.length < 3 && i < 1500); i++) {
    if (paint) paint.fillStyle = `hsl(${i * 20} 80% 50%)`
    paint?.fillRect(0, 0, 160, 120)
    await new Promise((resolve) => setTimeout(resolve, 40))
  }
  recorder.stop()
  await ended
  const bytes = new Uint8Array(await new Blob(parts).arrayBuffer())
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''))
}

/** A path that only the script of the PDF requests. */
const PDF_ASKS = '/v0/me?by=pdf'

/** A PDF of one page with a text, and with scripts that a viewer might run on opening. */
function pdfOf(text: string): string {
  const script = `app.alert(1); this.submitForm("${PDF_ASKS}"); try { window.ran = 1; parent.ran = 1 } catch (e) {}`
  const content = `BT /F1 24 Tf 72 720 Td (${text}) Tj ET`
  const objects = [
    '<< /Type /Catalog /Pages 2 0 R /OpenAction 6 0 R >>',
    '<< /Type /Pages /Kids [3 0 R] /Count 1 >>',
    '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 5 0 R /Resources << /Font << /F1 4 0 R >> >> >>',
    '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>',
    `<< /Length ${content.length} >>\nstream\n${content}\nendstream`,
    `<< /S /JavaScript /JS (${script.replaceAll(/[()]/g, '\\$&')}) >>`,
  ]
  let pdf = '%PDF-1.4\n'
  const at = objects.map((object, i) => {
    const start = pdf.length
    pdf += `${i + 1} 0 obj\n${object}\nendobj\n`
    return start
  })
  const rows = at.map((start) => `${String(start).padStart(10, '0')} 00000 n \n`).join('')
  return `${pdf}xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${rows}trailer\n<< /Size ${objects.length + 1} /Root 1 0 R >>\nstartxref\n${pdf.length}\n%%EOF\n`
}

const MIB = 1_048_576
/** A name with markup that a form can send, without quotes and slashes. */
const SIMPLE = '<img src=x onerror=window.ran=1>'
const carOf = (root: CID, blocks: Block[]) =>
  Buffer.concat([carHeader(root), ...blocks.flatMap((block) => carSection(block))])

/** The blocks of a folder with hostile names and a file of `size` bytes, root first. */
async function pack(size = 9 * 1_000_000) {
  const blocks: Block[] = []
  const put = async (block: Block) => void blocks.unshift(block)
  const add = (bytes: Uint8Array) =>
    writeFile(
      (async function* () {
        for (let at = 0; at < bytes.length; at += MIB) yield bytes.subarray(at, at + MIB)
      })(),
      put,
      1,
    )
  const inner = await writeDirectory(new Map([['../../up.txt', await add(Buffer.from('up'))]]), put)
  const large = await add(randomBytes(size))
  const { cid: root } = await writeDirectory(
    new Map([
      [HOSTILE, large],
      ['inner', inner],
    ]),
    put,
  )
  return { root, blocks }
}

describe('a preview', () => {
  it('a private file has a preview, and a link that works for the chosen time', async () => {
    await show(`secret of ${own.id}`, 'secret.txt', 'text/plain', 'private')
    await page.frameLocator('iframe').getByText(`secret of ${own.id}`).waitFor()
    await page.getByLabel('Valid for').selectOption('1 day')
    await page.getByRole('button', { name: 'Create a link' }).click()
    const href = await page.getByRole('link', { name: /X-Expires=86400/ }).getAttribute('href')
    assert.match(href ?? '', /^http:.*\/files\/baf/)
  })
  it('a video plays, and the browser’s PDF viewer runs no scripts in the page', async () => {
    const film = Buffer.from(await page.evaluate(recordFilm), 'base64')
    for (const network of ['public', 'private']) {
      const frame = await show(film, 'film.webm', 'video/webm', network)
      const video = await frame.waitForSelector('video')
      await frame.waitForFunction((video) => (video as HTMLVideoElement).readyState >= 2, video)
      assert.equal(await video.evaluate((video) => (video as HTMLVideoElement).videoWidth), 160)
    }
    await look('file-video')
    // The viewer may let a PDF open a dialog, which is dismissed here. The dialog is the browser's, and has no access
    // to this page.
    const pdf = await show(Buffer.from(pdfOf(own.id), 'latin1'), 'paper.pdf', 'application/pdf')
    assert.notEqual(new URL(pdf.url()).origin, new URL(url).origin)
    await until('the viewer is there', () =>
      page.frames().some((one) => one.url().startsWith('chrome-extension:') && one.parentFrame() === pdf),
    )
    await look('file-pdf')
    assert.equal(await page.evaluate('window.ran'), undefined)
    assert.equal(await pdf.evaluate('window.ran'), undefined)
    assert.deepEqual(
      asked.filter((address) => address.endsWith(PDF_ASKS)),
      [],
    )
  })
  it('a photo is scaled to fit, and a small picture keeps its size', async () => {
    const draw = ([width, height]: number[]) => {
      const canvas = Object.assign(document.createElement('canvas'), { width, height })
      return canvas.toDataURL('image/png').split(',')[1] ?? ''
    }
    for (const size of [
      [1600, 1067],
      [40, 30],
    ] as const) {
      const content = Buffer.from(await page.evaluate(draw, [...size]), 'base64')
      for (const network of ['public', 'private']) {
        await open([{ name: 'photo.png', content, type: 'image/png' }], network)
        const image = page.getByRole('img', { name: 'Preview of photo.png' })
        await until('it is there', () => image.evaluate((one) => (one as HTMLImageElement).naturalWidth > 0))
        const box = await image.boundingBox()
        assert.ok(box && box.height <= 448 && box.width <= size[0] + 2, JSON.stringify(box))
        assert.ok(Math.abs(box.width / box.height - size[0] / size[1]) < 0.1, JSON.stringify(box))
      }
    }
    await look('file-image')
  })
  it('CSV is shown as a table and Markdown with headings, whatever type the client sent', async () => {
    await open([{ name: 'team.csv', content: 'Name,Note\nAda,"one, two"\nBob,<b>\n', type: 'text/csv' }])
    await page.getByRole('columnheader', { name: 'Note' }).waitFor()
    await page.getByRole('cell', { name: 'one, two' }).waitFor()
    await page.getByRole('cell', { name: '<b>' }).waitFor()
    await look('file-csv')
    const content = `# Plan\n\n- **first** of ${own.id}\n\n${HOSTILE}\n`
    await open([{ name: 'plan.md', content, type: 'text/plain' }], 'private')
    const reading = page.getByRole('region', { name: 'Preview of plan.md' })
    await reading
      .getByRole('listitem')
      .filter({ hasText: `first of ${own.id}` })
      .waitFor()
    assert.equal(await reading.getByText('# Plan').count(), 0)
    await ranNothing()
    await look('file-markdown')
    const rows = Array.from({ length: 40_000 }, (_, i) => `${i},row`).join('\n')
    await open([{ name: 'long.csv', content: rows, type: 'text/csv' }])
    await page.getByText(/^Showing the first 262\S* KB of \S+ KB/).waitFor()
    await page.getByText('Showing the first 500 rows.').waitFor()
  })
  it('a hostile file of any type runs no scripts, and names with markup are shown as text', async () => {
    const script = 'window.ran=1;try{parent.ran=1;top.ran=1}catch{};fetch("/v0/me")'
    const svg = `<svg xmlns="http://www.w3.org/2000/svg" onload="${script.replaceAll('"', "'")}"><script>${script}</script></svg>`
    const contents: [string, string, string][] = [
      ['hostile.html', 'text/html', `<p>seen</p><script>${script}</script>${HOSTILE}`],
      ['hostile.txt', 'text/plain', HOSTILE],
    ]
    for (const [name, type, content] of contents) {
      const named = { name: `${HOSTILE} ${name}`, keyvalues: JSON.stringify({ [HOSTILE]: HOSTILE }) }
      const frame = await show(content, name, type, 'public', named)
      await page.getByRole('heading', { name: `${HOSTILE} ${name}` }).waitFor()
      await frame.waitForLoadState()
      assert.notEqual(new URL(frame.url()).origin, new URL(url).origin)
      for (const one of page.frames()) assert.equal(await one.evaluate('window.ran'), undefined, name)
    }
    await open([{ name: 'hostile.svg', type: 'image/svg+xml', content: svg }])
    await page.getByRole('img', { name: 'Preview of hostile.svg' }).waitFor()
    await page.goto(`${url}/dashboard/files`)
    await page.getByText(`${HOSTILE} hostile.txt`).waitFor()
    assert.equal(await page.evaluate('window.ran'), undefined)
    await look('files')
  })
  it('a viewer sees a private file through a short-lived link', async () => {
    const address = await open([{ name: 'secret.txt', content: `for viewers of ${own.id}` }], 'private')
    const viewer = await own.member('viewer')
    const theirs = await newPage()
    await signIn(theirs, viewer.name)
    await theirs.goto(address)
    await theirs.frameLocator('iframe').getByText(`for viewers of ${own.id}`).waitFor()
    assert.match((await theirs.locator('iframe').getAttribute('src')) ?? '', /X-Expires=900&/)
    assert.equal(await theirs.getByRole('button', { name: 'Create a link' }).count(), 0)
    await theirs.context().close()
  })
})

/** The displayed rows of a tree: names and sizes. */
const rows = (label: string | RegExp) => page.getByRole('list', { name: label }).getByRole('listitem')
const folderNamed = (name: string) => page.getByRole('button', { name, exact: true })

describe('the tree of a folder', () => {
  it('a stored folder shows its contents, and its folders expand', async () => {
    const files = [
      { name: `site/${SIMPLE}/deep/<b>deepest.txt`, content: 'deep' },
      { name: 'site/index.html', content: '<script>window.ran=1</script>' },
      { name: 'site/large.bin', content: randomBytes(2 * MIB) },
    ]
    for (const network of ['public', 'private']) {
      await open(files, network)
      await rows('Contents of site').filter({ hasText: 'large.bin' }).getByText('2.1 MB').waitFor()
      assert.equal(await rows('Contents of site').count(), 3)
      await folderNamed(SIMPLE).click()
      await folderNamed('deep').click()
      await rows('Contents of deep').filter({ hasText: '<b>deepest.txt' }).getByText('4 B').waitFor()
      const cid = page.getByRole('button', { name: 'Copy the CID of large.bin' })
      assert.match((await cid.getAttribute('title')) ?? '', /^bafy/)
      await ranNothing()
    }
    await look('file-folder')
    const has = (name: string) =>
      page.waitForFunction((name) => document.activeElement?.textContent?.includes(name), name)
    await folderNamed('deep').focus()
    await page.keyboard.press('ArrowDown')
    await has('<b>deepest.txt')
    await page.keyboard.press('ArrowLeft')
    await has('deep')
    await page.keyboard.press('ArrowLeft')
    await rows('Contents of deep').first().waitFor({ state: 'detached' })
    await page.keyboard.press('End')
    await has('large.bin')
    await page.keyboard.press('Home')
    await page.keyboard.press('ArrowRight')
    await has('deep')
  })
  it('a folder of many entries shows some, and more on request', async () => {
    const files = Array.from({ length: 130 }, (_, i) => ({ name: `many/${i}.txt`, content: `${i}` }))
    await open(files)
    await page.getByRole('button', { name: 'Show more' }).click()
    await until('all are there', async () => (await rows('Contents of many').count()) === 130)
  })
})

describe('the tree of a CAR', () => {
  it('a CAR shows names, sizes and CIDs of its contents, with markup in names as text', async () => {
    const { root, blocks } = await pack(2_000_000)
    for (const network of ['public', 'private']) {
      await open([{ name: 'archive.car', content: carOf(root, blocks) }], network)
      await rows(`Contents of ${root}`).filter({ hasText: HOSTILE }).getByText('2 MB').waitFor()
      await folderNamed('inner').click()
      await rows('Contents of inner').filter({ hasText: '../../up.txt' }).getByText('2 B').waitFor()
      await ranNothing()
    }
    await look('file-car')
  })
  it('a large CAR is read only at its beginning, and further on request', async () => {
    const { root, blocks } = await pack()
    // In the order of the importer, which writes folders last.
    await open([{ name: 'archive.car', content: carOf(root, blocks.toReversed()) }])
    await page.getByText(/^Only the first [78]\S* MB of 9 MB were read/).waitFor()
    await rows('Contents of archive.car').getByText('not read', { exact: true }).waitFor()
    await page.getByRole('button', { name: /^Read up to 9/ }).click()
    await rows(`Contents of ${root}`).filter({ hasText: HOSTILE }).waitFor()
    assert.equal(await page.getByText(/^Only the first/).count(), 0)
  })
  it('a damaged or forged CAR shows only verified blocks, and says so', async () => {
    const { root, blocks } = await pack(10)
    const bytes = carOf(root, blocks)
    await open([{ name: 'short.car', content: bytes.subarray(0, -20) }])
    await page.getByText(/^The archive is damaged, or ends too early, after/).waitFor()
    await rows(`Contents of ${root}`).filter({ hasText: HOSTILE }).waitFor()
    const forged = blocks.map(({ cid }) => ({ cid, bytes: Buffer.from(HOSTILE) }))
    await open([{ name: 'forged.car', content: carOf(root, forged) }])
    await page.getByText(`${forged.length} blocks are left out`).waitFor()
    await rows('Contents of forged.car').getByText('not read', { exact: true }).waitFor()
    await open([{ name: 'none.car', content: `${HOSTILE} is no CAR` }], 'public', { name: `${HOSTILE}.car` })
    await page.getByText('This is not a CAR archive').waitFor()
    await ranNothing()
  })
  it('the browser reported no errors', () => assert.deepEqual(complaints, []))
})
