/**
 * Image options of a gateway's URLs, as the npm SDK sends them: on images that the tests create, and on hostile files.
 */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { crc32, deflateSync } from 'node:zlib'
import sharp, { type Sharp } from 'sharp'
import { assertRefused, gatewayReader, type Served } from '../support/gateway.ts'
import { childrenOf } from '../support/images.ts'
import { until } from '../support/processes.ts'
import { openContext } from './context.ts'
import { openGateway } from './gateway.ts'
import { store } from './stored.ts'
import { startWebProcess, type WebProcess } from './web-process.ts'

const NOT_CONVERTED = 'img-…: the file cannot be converted: '
const RED = { r: 255, g: 0, b: 0 }
const BLUE = { r: 0, g: 0, b: 255 }

const context = await openContext()
const workspace = await context.workspace()
const gateway = await openGateway(context, workspace)

/** Stores a file; resolves to its path at the gateway. */
const put = async (bytes: string | Buffer, network: 'public' | 'private' = 'public', name = 'image') => {
  const { cid } = await store(
    workspace.api,
    network,
    typeof bytes === 'string' ? bytes : Uint8Array.from(bytes),
    { name },
  )
  return `/${network === 'public' ? 'ipfs' : 'files'}/${cid}`
}
const plain = (width: number, height: number, background: object = RED, channels: 3 | 4 = 3) =>
  sharp({ create: { width, height, channels, background: background as typeof RED } })
/** An image whose left half is red and whose right half is blue. */
const halves = async () =>
  plain(400, 200).composite([{ input: await bytesOf(plain(200, 200, BLUE).png()), left: 200, top: 0 }])
const bytesOf = (image: Sharp) => image.toBuffer()
const noise = (width: number, height: number) =>
  sharp({
    create: {
      width,
      height,
      channels: 3,
      background: RED,
      noise: { type: 'gaussian', mean: 128, sigma: 30 },
    },
  })

const original = await bytesOf((await halves()).png())
const png = await put(original, 'public', 'photo.png')
const photo = await put(
  await bytesOf(
    noise(600, 300)
      .withExif({ IFD0: { Copyright: 'Ada', Artist: 'Bob' } })
      .withMetadata({ orientation: 6 })
      .jpeg(),
  ),
)
const animation = await put(
  await bytesOf(
    sharp([await bytesOf(plain(40, 20).png()), await bytesOf(plain(40, 20, BLUE).png())], {
      join: { animated: true },
    }).gif(),
  ),
)

/** Requests an image; resolves to the response and the image's metadata. */
const show = async (path: string, query: string, headers = {}) => {
  const served = await gateway.get(`${path}?${query}`, headers)
  assert.equal(served.status, 200, served.text)
  return { ...served, is: await sharp(served.bytes, { animated: true }).metadata() }
}
const sizeOf = async (path: string, query: string) => {
  const { is } = await show(path, query)
  return `${is.width}x${is.height}`
}
/** The path and query of a signed link to an image. */
const linkTo = async (path: string, query: string) => {
  const reply = await workspace.api.post('/v3/files/private/download_link', {
    url: `https://${gateway.host}${path}?${query}`,
    date: Math.floor(Date.now() / 1000),
    expires: 60,
    method: 'GET',
  })
  const { pathname, search } = new URL(reply.body.data)
  return `${pathname}${search}`
}
/** The same gateway at another web process. */
const at = ({ url }: WebProcess) => gatewayReader(url, `${gateway.host.split(':')[0]}:${new URL(url).port}`)
/** `red` or `blue`, if the image is close to that color there. */
const colorAt = async ({ bytes }: Served, left: number, top: number) => {
  const region = sharp(bytes).removeAlpha().extract({ left, top, width: 1, height: 1 })
  const [r = 0, g = 0, b = 0] = await region.raw().toBuffer()
  return r > 200 && g > 200 && b > 200 ? 'white' : r > 200 ? 'red' : b > 200 ? 'blue' : `${r} ${g} ${b}`
}

describe('a converted image', () => {
  it('a converted image keeps its format, has its own tag, and is as immutable as its file', async () => {
    const { headers, bytes, is } = await show(png, 'img-width=100')
    assert.equal(is.format, 'png')
    assert.equal(headers['content-type'], 'image/png')
    assert.equal(headers['content-length'], `${bytes.length}`)
    assert.equal(headers['cache-control'], 'public, max-age=29030400, immutable')
    assert.match(`${headers['content-security-policy']}`, /^sandbox /)
    assert.match(`${headers.etag}`, new RegExp(`^"${png.slice('/ipfs/'.length)}\\.img-`))
    assert.notEqual(headers.etag, (await show(png, 'img-width=101')).headers.etag)
  })

  it('a converted image supports conditions, ranges and HEAD like its file', async () => {
    const { headers, bytes } = await show(png, 'img-width=100')
    const path = `${png}?img-width=100`
    assert.equal((await gateway.get(path, { 'if-none-match': `${headers.etag}` })).status, 304)
    const head = await gateway.head(path)
    assert.deepEqual(
      [head.status, head.headers['content-length'], head.bytes.length],
      [200, `${bytes.length}`, 0],
    )
    const part = await gateway.get(path, { range: 'bytes=1-3' })
    assert.deepEqual([part.status, part.text], [206, 'PNG'])
  })

  it('a cropped image keeps the side that img-gravity names, and padding is white', async () => {
    const box = 'img-width=100&img-height=100&img-fit='
    for (const [gravity, color] of Object.entries({
      left: 'red',
      right: 'blue',
      '0x0.5': 'red',
      '1x1': 'blue',
    }))
      assert.equal(
        await colorAt(await show(png, `${box}cover&img-gravity=${gravity}`), 50, 50),
        color,
        gravity,
      )
    const padded = await show(png, `${box}pad`)
    assert.equal(await colorAt(padded, 50, 5), 'white')
    assert.equal(await colorAt(padded, 10, 50), 'red')
  })

  it('a converted image has the format of its source, or the format that img-format names', async () => {
    const webp = { accept: 'image/avif,image/webp,*/*' }
    const formats: [string, object, string][] = [
      ['img-width=50', webp, 'png'],
      ['img-format=webp', {}, 'webp'],
      ['img-format=jpeg', {}, 'jpeg'],
      ['img-format=auto', webp, 'webp'],
      ['img-format=auto', {}, 'png'],
    ]
    for (const [query, headers, format] of formats) {
      const served = await show(png, query, headers)
      assert.equal(served.is.format, format, query)
      assert.equal(served.headers['content-type'], `image/${format}`)
      assert.equal(served.headers.vary, 'Accept')
    }
    const { headers } = await gateway.get(`${png}?img-format=webp&download=true`)
    assert.equal(headers['content-disposition'], 'attachment; filename="photo.webp"')
  })

  it('a photo is turned upright, and keeps the metadata that img-metadata selects', async () => {
    const exif = async (query: string) => `${(await show(photo, `img-width=100${query}`)).is.exif ?? ''}`
    assert.equal(await sizeOf(photo, 'img-width=100'), '100x200')
    assert.match(await exif(''), /Ada/)
    assert.doesNotMatch(await exif('&img-metadata=copyright'), /Bob/)
    assert.match(await exif('&img-metadata=keep'), /Bob/)
    assert.equal(await exif('&img-metadata=none'), '')
    assert.equal((await show(photo, 'img-width=100&img-metadata=keep')).is.autoOrient.width, 100)
  })

  it('an animation stays animated unless img-anim or the format prevents it', async () => {
    const frames = async (query: string) => (await show(animation, query)).is.pages ?? 1
    assert.equal(await frames('img-width=20'), 2)
    assert.equal(await frames('img-width=20&img-format=webp'), 2)
    assert.equal(await frames('img-width=10&img-height=10&img-fit=cover&img-gravity=auto'), 2)
    assert.equal(await frames('img-width=20&img-anim=false'), 1)
    assert.equal(await frames('img-width=20&img-format=jpeg'), 1)
    assert.equal(await sizeOf(animation, 'img-width=20&img-anim=false'), '20x10')
  })

  it('a lower quality takes fewer bytes, and sharpening changes the image', async () => {
    const of = async (query: string) => (await show(photo, query)).bytes
    assert.ok((await of('img-quality=20')).length < (await of('img-quality=90')).length)
    assert.ok(!(await of('img-sharpen=3')).equals(await of('img-quality=85')))
  })

  it('an image inside a folder is converted too', async () => {
    const node = await context.provider()
    const folder = await node.folder({ 'a/b.png': original })
    const { record } = await workspace.api.pin(
      { cid: `${folder}`, host_nodes: [node.multiaddr] },
      { wait: 120 },
    )
    assert.equal(record.status, 'pinned')
    assert.equal(await sizeOf(`/ipfs/${folder}/a/b.png`, 'img-width=100'), '100x50')
  })
})

describe('image requests', () => {
  it('an image request with an unknown or out-of-range option returns 400 and names it', async () => {
    const refused = {
      'img-width=0': 'img-width: must be a whole number from 1 to 8192',
      'img-quality=101': 'img-quality: must be a whole number from 1 to 100',
      'img-fit=fill&img-onerror=redirect': /^img-fit: must be scale-down, /,
      'img-blur=5': /^img-…: the image options are img-width, /,
      'img-width=8000&img-height=8000&img-fit=pad': `${NOT_CONVERTED}the result would have more than 16777216 pixels: ask for a smaller one`,
    }
    for (const [query, message] of Object.entries(refused))
      assertRefused(await gateway.get(`${png}?${query}`), 400, message)
  })

  it('a request for a private image needs a signature that covers its options', async () => {
    const path = await put(original, 'private')
    const [pathname = '', search = ''] = (await linkTo(path, 'img-width=100')).split('?')
    const { is, headers } = await show(pathname, search)
    assert.equal(is.width, 100)
    assert.equal(headers['cache-control'], 'private, no-store')
    assertRefused(await gateway.get(`${pathname}?${search.replace('=100', '=200')}`), 403, /^X-Signature: /)
    assertRefused(await gateway.get(`${path}?img-width=100`), 401, /^X-Signature: /)
  })

  it('a request for an image at a restricted gateway needs an access token', async () => {
    const restricted = await openGateway(context, workspace)
    const { body } = await workspace.api.post(`/v3/gateways/${restricted.id}/access_tokens`, {})
    assertRefused(await restricted.get(`${png}?img-width=10`), 401, /^This gateway is restricted/)
    const { status } = await restricted.get(`${png}?img-width=10&pinataGatewayToken=${body.data.value}`)
    assert.equal(status, 200)
  })

  it('a request for an image of another workspace finds nothing', async () => {
    const strange = await openGateway(context, await context.workspace())
    assertRefused(await strange.get(`${png}?img-width=10`), 404, 'cid: not kept here')
  })
})

describe('a file that cannot be converted', () => {
  const svg =
    '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><image href="file:///etc/passwd" width="9" height="9"/></svg>'
  const files: Record<string, [() => Promise<string | Buffer>, string | RegExp]> = {
    'a text': [async () => 'not an image', `${NOT_CONVERTED}it is not a JPEG, PNG, GIF or WebP`],
    'an SVG that links to a file': [async () => svg, `${NOT_CONVERTED}it is not a JPEG, PNG, GIF or WebP`],
    'a TIFF': [() => bytesOf(plain(9, 9).tiff()), `${NOT_CONVERTED}it is not a JPEG, PNG, GIF or WebP`],
    'a truncated JPEG': [
      async () => (await bytesOf(noise(600, 300).jpeg())).subarray(0, 20_000),
      /^img-…: the file cannot be converted: VipsJpeg: premature end/,
    ],
    'a PNG of 900 million pixels in 100 KB': [
      async () => pngOf(30_000, 30_000),
      `${NOT_CONVERTED}it has more than 50000000 pixels, all frames together (BERTH_IMAGES)`,
    ],
    'a GIF of 1,000 frames of 300 by 300': [
      async () => manyFrames(await bytesOf(plain(300, 300).gif()), 1000),
      `${NOT_CONVERTED}it has more than 50000000 pixels, all frames together (BERTH_IMAGES)`,
    ],
  }
  for (const [name, [make, message]] of Object.entries(files))
    it(`${name} returns 400, or the file itself with img-onerror=redirect`, async () => {
      const bytes = await make()
      const path = await put(bytes)
      assertRefused(await gateway.get(`${path}?img-width=10`), 400, message)
      const served = await gateway.get(`${path}?img-width=10&img-onerror=redirect`)
      assert.equal(served.status, 200)
      assert.ok(served.bytes.equals(Buffer.from(bytes)))
      assert.equal(served.headers.etag, `"${path.slice('/ipfs/'.length)}"`)
    })

  it('the first frame of a GIF with too many frames is served without its animation', async () => {
    const path = await put(manyFrames(await bytesOf(plain(300, 300).gif()), 1000))
    assert.equal(await sizeOf(path, 'img-width=30&img-anim=false'), '30x30')
  })
})

describe('image processes', () => {
  let web: WebProcess
  before(async () => {
    web = await startWebProcess(context.env, { BERTH_IMAGES: 'processes=1,seconds=30' })
  })
  after(() => web?.running.end())

  it('web processes share converted public images, and store no private ones', async () => {
    const kept = ({ headers }: Served) =>
      join(
        context.env.BERTH_DATA_DIR ?? '',
        'images',
        createHash('sha256').update(`${headers.etag}`).digest('hex'),
      )
    const privately = await gateway.get(
      await linkTo(await put(await bytesOf(plain(90, 90).png()), 'private'), 'img-width=77'),
    )
    assert.equal(privately.status, 200)
    const converted = await show(png, 'img-width=77')
    await until('the result is stored', () => existsSync(kept(converted)))
    assert.ok(!existsSync(kept(privately)))
    const { get } = at(web)
    assert.ok((await get(`${png}?img-width=77`)).bytes.equals(converted.bytes))
    assert.deepEqual(await childrenOf(web.running.process.pid ?? 0), [])
  })

  it('if the image process is killed, the web process reports it and converts the next image', async () => {
    const { get } = at(web)
    const pid = web.running.process.pid ?? 0
    assert.deepEqual(await childrenOf(pid), [], 'the process starts with the first image')
    const large = await put(await bytesOf(noise(3000, 3000).jpeg({ quality: 50 })))
    const answer = get(`${large}?img-format=webp`)
    const [child = 0] = await until('an image is being converted', async () => {
      const children = await childrenOf(pid)
      return children.length > 0 && children
    })
    process.kill(child, 'SIGKILL')
    const served = await answer
    assertRefused(served, 503, 'Converting the image ended with SIGKILL')
    assert.equal(served.headers['retry-after'], '60')
    assertRefused(await get(`${large}?img-width=10`), 503, 'This image could not be converted a moment ago')
    const itself = await get(`${large}?img-width=10&img-onerror=redirect`)
    assert.equal(itself.headers['cache-control'], 'no-store')
    assert.equal((await get(`${png}?img-width=13`)).status, 200)
  })

  it('a killed web process leaves no image process behind', async () => {
    const children = await childrenOf(web.running.process.pid ?? 0)
    assert.equal(children.length, 1)
    await web.running.end('SIGKILL')
    await until('its image process has exited', () => !existsSync(`/proc/${children[0]}`))
  })
})

describe('a web process without image processes', () => {
  it('a web process with no image processes serves images unchanged', async () => {
    const web = await startWebProcess(context.env, { BERTH_IMAGES: 'processes=0' })
    try {
      const { get } = at(web)
      const served = await get(`${png}?img-width=10`)
      assert.ok(served.bytes.equals(original))
    } finally {
      await web.running.end()
    }
  })
})

/** A GIF that repeats its only frame many times. */
function manyFrames(gif: Buffer, count: number): Buffer {
  // The header and the screen descriptor take 13 bytes, then comes the color table; the last byte ends the file.
  const table = 13 + 3 * 2 ** (((gif[10] ?? 0) & 7) + 1)
  const frame = gif.subarray(table, -1)
  return Buffer.concat([gif.subarray(0, table), ...Array<Buffer>(count).fill(frame), gif.subarray(-1)])
}

/** An all-black PNG with one bit per pixel: a decompression bomb. */
function pngOf(width: number, height: number): Buffer {
  const uint32 = (value: number) => {
    const bytes = Buffer.alloc(4)
    bytes.writeUInt32BE(value)
    return bytes
  }
  const chunk = (name: string, data: Buffer) => {
    const named = Buffer.concat([Buffer.from(name), data])
    return Buffer.concat([uint32(data.length), named, uint32(crc32(named))])
  }
  return Buffer.concat([
    Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'),
    chunk('IHDR', Buffer.concat([uint32(width), uint32(height), Buffer.from([1, 0, 0, 0, 0])])),
    chunk('IDAT', deflateSync(Buffer.alloc((1 + Math.ceil(width / 8)) * height))),
    chunk('IEND', Buffer.alloc(0)),
  ])
}
