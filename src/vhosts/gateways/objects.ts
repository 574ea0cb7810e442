/**
 * Blocks that are objects of a codec instead of files: dag-json, dag-cbor, json and cbor. They are served unchanged.
 */
import * as dagCbor from '@ipld/dag-cbor'
import * as dagJson from '@ipld/dag-json'
import { CID } from 'multiformats/cid'
import * as json from 'multiformats/codecs/json'
import { ApiError } from '../../errors.ts'
import { escapeHtml } from '../../http/docs/html.ts'
import { CBOR, decodeObject } from '../../storage/dag/codecs.ts'
import { OBJECT_BYTES } from '../../storage/dag/limits.ts'
import type { Walked } from './content.ts'
import { namedDisposition } from './file.ts'
import { type Format, MEDIA_TYPES } from './formats.ts'
import { PAGE_HEADERS, page } from './page.ts'
import { inMemory, type Representation } from './respond.ts'

/** Maximum levels of an object that is shown as text. */
const LEVELS = 32

interface Codec {
  /** The format that is served by default, and others for the same bytes. */
  formats: [Format, ...Format[]]
  extension: 'json' | 'cbor'
}

const CODECS = new Map<number, Codec>([
  [dagJson.code, { formats: ['dag-json', 'json'], extension: 'json' }],
  [dagCbor.code, { formats: ['dag-cbor', 'cbor'], extension: 'cbor' }],
  [json.code, { formats: ['json'], extension: 'json' }],
  [CBOR, { formats: ['cbor'], extension: 'cbor' }],
])

/**
 * An object in the requested format; undefined for a block that is not an object.
 * @throws ApiError 406 for a format of another codec: nothing is converted.
 */
export function objectRepresentation(
  { entry: { cid }, block }: Walked,
  asked: Format | undefined,
  url: URL,
): Representation | undefined {
  const codec = CODECS.get(cid.code)
  if (!codec) return undefined
  if (asked === 'html') return objectPage(cid, codec, block)
  const format = asked ?? codec.formats[0]
  if (!codec.formats.includes(format)) {
    throw new ApiError(406, 'not_acceptable', `format: ${cid} is ${codec.formats[0]}, and not converted`)
  }
  const usual = codec.extension === 'json' ? 'inline' : 'attachment'
  return {
    etag: `"${cid}.${format}"`,
    headers: {
      'Content-Type': MEDIA_TYPES[format],
      ...namedDisposition(url, `${cid}.${codec.extension}`, usual),
    },
    ...inMemory(block),
  }
}

/** A page for people: the object as JSON, if it is small, and links to its unmodified formats. */
function objectPage(cid: CID, { formats }: Codec, block: Uint8Array): Representation {
  const [format] = formats
  const title = `${cid}`
  const links = [...formats, 'raw'].map((one) => `<a href="?format=${one}">${one}</a>`).join(' ')
  const body = `<h1>${title}</h1>
<p>${format}, ${block.length} bytes: ${links}</p>
<pre>${escapeHtml(asText(cid, block))}</pre>
`
  return {
    etag: `"DagIndex-1_CID-${cid}"`,
    headers: PAGE_HEADERS,
    async *read() {
      yield Buffer.from(page(title, body))
    },
  }
}

function asText(cid: CID, block: Uint8Array): string {
  if (block.length > OBJECT_BYTES) return ''
  const text = Buffer.from(block).toString()
  if (cid.code === dagJson.code || cid.code === json.code) return text
  if (cid.code !== dagCbor.code) return ''
  const value = decodeObject(cid, block)
  if (isDeep(value)) return ''
  return JSON.stringify(JSON.parse(Buffer.from(dagJson.encode(value)).toString()), null, 2)
}

/**
 * True for a value whose text would be many times as large as its block: each line is indented by all enclosing levels.
 */
function isDeep(value: unknown): boolean {
  let level = [value]
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > LEVELS) return true
    level = level.flatMap((one) =>
      typeof one === 'object' && one !== null && !(one instanceof Uint8Array) && !CID.asCID(one)
        ? Object.values(one)
        : [],
    )
  }
  return false
}
