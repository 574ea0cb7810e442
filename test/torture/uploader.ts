/**
 * A client that uploads and deletes one content in one workspace and network, in one way, and repeats each step until
 * Berth has acknowledged it. The last acknowledgement must be true in the end.
 */
import { createCipheriv } from 'node:crypto'
import { CarWriter } from '@ipld/car'
import { CID } from 'multiformats/cid'
import * as raw from 'multiformats/codecs/raw'
import { sha256 } from 'multiformats/hashes/sha2'
import type { Network } from '../../src/storage/port.ts'
import { until } from '../support/processes.ts'
import type { Random } from './seed.ts'
import type { Tenant } from './subject.ts'

export type Way = 'multipart' | 'tus' | 'car'

const ANSWER_MS = 60_000
const INSIST_MS = 240_000
const TUS_CHUNK = 300_000

export interface UploaderOptions {
  url: () => string
  tenant: Tenant
  network: Network
  way: Way
  content: Uint8Array
}

export class Uploader {
  readonly options: UploaderOptions
  /** The last acknowledged CID; undefined before the first, or after its deletion. */
  cid: string | undefined
  #location: string | undefined

  constructor(options: UploaderOptions) {
    this.options = options
  }

  /** Uploads until Berth says that the file exists. */
  async upload(): Promise<void> {
    const { way, network } = this.options
    this.cid = await until(
      `a ${network} upload by ${way} is acknowledged`,
      () => (way === 'tus' ? this.#resume() : this.#post()),
      INSIST_MS,
    )
  }

  /** Deletes every file of the content until Berth says that it is gone. */
  async remove(): Promise<void> {
    const { network } = this.options
    const attempt = async () => {
      const listed = await this.#fetch(`/v3/files/${network}?cid=${this.cid}`)
      if (listed?.status !== 200) return false
      const { data } = (await listed.json()) as { data: { files: { id: string }[] } }
      for (const { id } of data.files) {
        const answer = await this.#fetch(`/v3/files/${network}/${id}`, { method: 'DELETE' })
        if (answer?.status !== 200) return false
      }
      return data.files.length === 0
    }
    await until(`a ${network} file is gone`, attempt, INSIST_MS)
    this.cid = undefined
  }

  async #post(): Promise<string | undefined> {
    const { network, way, content } = this.options
    const form = new FormData()
    form.set('network', network)
    if (way === 'car') form.set('car', 'true')
    const bytes = way === 'car' ? await packCar(content) : content
    form.set('file', new Blob([Uint8Array.from(bytes)]), 'file')
    const answer = await this.#fetch('/v3/files', { method: 'POST', body: form })
    if (answer?.status !== 200) return undefined
    const { data } = (await answer.json()) as { data: { cid: string } }
    return data.cid
  }

  /** Resumes at the offset that Berth reports. An upload that Berth has forgotten restarts from the beginning. */
  async #resume(): Promise<string | undefined> {
    const { network, content } = this.options
    if (!this.#location) {
      const created = await this.#fetch('/v3/files', {
        method: 'POST',
        headers: {
          'tus-resumable': '1.0.0',
          'upload-length': `${content.length}`,
          'upload-metadata': `filename ${btoa('file')},network ${btoa(network)}`,
        },
      })
      this.#location = created?.status === 201 ? (created.headers.get('location') ?? undefined) : undefined
      if (!this.#location) return undefined
    }
    const path = new URL(this.#location, this.options.url()).pathname
    const head = await this.#fetch(path, { method: 'HEAD', headers: { 'tus-resumable': '1.0.0' } })
    if (head?.status === 404 || head?.status === 410) this.#location = undefined
    if (head?.status !== 200) return undefined
    for (let offset = Number(head.headers.get('upload-offset')); ; ) {
      const chunk = content.subarray(offset, offset + TUS_CHUNK)
      const patched = await this.#fetch(path, {
        method: 'PATCH',
        headers: {
          'tus-resumable': '1.0.0',
          'content-type': 'application/offset+octet-stream',
          'upload-offset': `${offset}`,
        },
        body: Uint8Array.from(chunk),
      })
      if (patched?.status !== 204) return undefined
      offset += chunk.length
      if (offset < content.length) continue
      this.#location = undefined
      return patched.headers.get('upload-cid') ?? undefined
    }
  }

  /** Undefined if no response came. Its body is read completely: a connection that breaks later is not a response. */
  async #fetch(path: string, init: RequestInit = {}): Promise<Response | undefined> {
    const headers = { ...init.headers, authorization: `Bearer ${this.options.tenant.token}` }
    try {
      const signal = AbortSignal.timeout(ANSWER_MS)
      const answer = await fetch(`${this.options.url()}${path}`, { ...init, headers, signal })
      const text = await answer.text()
      return new Response(text || null, { status: answer.status, headers: answer.headers })
    } catch {
      return undefined
    }
  }
}

/** This many bytes, which only this seed gives. */
export function makeContent(random: Random, length: number): Uint8Array {
  const key = Buffer.from(random.bytes(16))
  return createCipheriv('aes-128-ctr', key, Buffer.alloc(16)).update(Buffer.alloc(length))
}

/** A CAR of one raw block, whose content is not the CAR file itself. */
async function packCar(bytes: Uint8Array): Promise<Uint8Array> {
  const cid = CID.createV1(raw.code, await sha256.digest(bytes))
  const { writer, out } = CarWriter.create([cid])
  const chunks: Uint8Array[] = []
  const collected = (async () => {
    for await (const chunk of out) chunks.push(chunk)
  })()
  await writer.put({ cid, bytes })
  await writer.close()
  await collected
  return Buffer.concat(chunks)
}
