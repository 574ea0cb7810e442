/**
 * Computes the CID of an upload before it is sent, in a worker thread, so that the page stays responsive. A folder
 * becomes a CAR whose leaves are slices of the files, so that their contents are not held in memory. The server's own
 * code builds the blocks, so the CIDs match its imports (`unixfs-v1-2025`).
 */
import { CarWriter } from '@ipld/car/writer'
import { varint } from 'multiformats'
import type { CID } from 'multiformats/cid'
import { code as RAW } from 'multiformats/codecs/raw'
import {
  type Entry,
  type Folder,
  placeFile,
  writeFile,
  writeFolder,
} from '../../../../../src/storage/dag/unixfs-write.ts'

/** A file, with its path relative to the folder. */
export interface PackedFile {
  path: string
  file: File
}
export interface PackRequest {
  files: PackedFile[]
  isFolder: boolean
}
/** Progress in bytes, then the CID and the body to send, or the reason for a failure. */
export type PackAnswer =
  | { state: 'working'; bytes: number }
  | { state: 'done'; cid: string; body: Blob }
  | { state: 'failed'; reason: string }

/** Bytes between progress reports. */
const REPORT_BYTES = 4_194_304

addEventListener('message', ({ data }: MessageEvent<PackRequest>) => {
  pack(data).then(
    (answer) => postMessage(answer),
    (error) => postMessage({ state: 'failed', reason: String(error?.message ?? error) } satisfies PackAnswer),
  )
})

async function pack({ files, isFolder }: PackRequest): Promise<PackAnswer> {
  const [first] = files
  if (!first) throw new Error('There is no file')
  if (!isFolder) {
    const { cid } = await writeFile(reported(first.file), async () => {}, 1)
    return { state: 'done', cid: `${cid}`, body: first.file }
  }
  const car = new Car()
  const root: Folder = new Map()
  for (const { path, file } of files) placeFile(root, path.split('/'), await car.add(file))
  const { cid } = await writeFolder(root, car.put)
  return { state: 'done', cid: `${cid}`, body: new Blob([await headerOf(cid), ...car.parts]) }
}

let read = 0
let told = 0
async function* reported(file: File): AsyncGenerator<Uint8Array> {
  for (const reader = file.stream().getReader(); ; ) {
    const { done, value } = await reader.read()
    if (done) return
    yield value
    read += value.length
    if (read - told < REPORT_BYTES) continue
    told = read
    postMessage({ state: 'working', bytes: read } satisfies PackAnswer)
  }
}

/** Collects the blocks of a CAR in order of arrival, each only once. */
class Car {
  readonly parts: BlobPart[] = []
  readonly #known = new Set<string>()

  async add(file: File): Promise<Entry> {
    let from = 0
    const put = async ({ cid, bytes }: { cid: CID; bytes: Uint8Array }) => {
      if (cid.code !== RAW) return this.#put(cid, bytes as Uint8Array<ArrayBuffer>, bytes.length)
      // Leaves arrive in file order.
      this.#put(cid, file.slice(from, from + bytes.length), bytes.length)
      from += bytes.length
    }
    return writeFile(reported(file), put, 1)
  }

  readonly put = async ({ cid, bytes }: { cid: CID; bytes: Uint8Array }) =>
    this.#put(cid, bytes as Uint8Array<ArrayBuffer>, bytes.length)

  #put(cid: CID, content: BlobPart, length: number): void {
    const name = `${cid}`
    if (this.#known.has(name)) return
    this.#known.add(name)
    const size = cid.bytes.length + length
    const prefix = varint.encodeTo(size, new Uint8Array(varint.encodingLength(size)))
    this.parts.push(prefix as Uint8Array<ArrayBuffer>, cid.bytes as Uint8Array<ArrayBuffer>, content)
  }
}

async function headerOf(root: CID): Promise<Blob> {
  const { writer, out } = CarWriter.create([root])
  const parts: BlobPart[] = []
  await Promise.all([
    writer.close(),
    (async () => {
      for await (const bytes of out) parts.push(bytes as Uint8Array<ArrayBuffer>)
    })(),
  ])
  return new Blob(parts)
}
