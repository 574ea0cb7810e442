/** Resumable uploads by hand: each request as a client would send it, each response unprocessed. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { request } from 'node:http'
import type { Client } from '../support/client.ts'
import { recordTokens } from '../support/token-record.ts'

/** The header of every request of a protocol client; the npm SDK does not send it. */
export const TUS = { 'tus-resumable': '1.0.0' }

type Headers = Record<string, string>
type Caller = Pick<Client, 'url' | 'key'>

export function encodeMetadata(pairs: Record<string, string>): string {
  return Object.entries(pairs)
    .map(([key, value]) => `${key} ${Buffer.from(value).toString('base64')}`)
    .join(',')
}

/**
 * Requests a new upload; `metadata` may be the header itself.
 * @param options.body the first bytes, sent along with the request.
 */
export function create(
  { url, key }: Caller,
  length: number | string,
  metadata: Record<string, string> | string = {},
  options: { headers?: Headers; target?: string; body?: Uint8Array<ArrayBuffer> } = {},
): Promise<Response> {
  const header = typeof metadata === 'string' ? metadata : encodeMetadata(metadata)
  return fetch(options.target ?? `${url}/v3/files`, {
    method: 'POST',
    headers: {
      ...(key && { authorization: `Bearer ${key}` }),
      'upload-length': `${length}`,
      ...(header && { 'upload-metadata': header }),
      ...(options.body && { 'content-type': 'application/offset+octet-stream' }),
      ...options.headers,
    },
    ...(options.body && { body: options.body }),
  })
}

/** The URL of a new upload, and the id of the file that it becomes. */
export async function begin(...args: Parameters<typeof create>): Promise<{ location: string; id: string }> {
  const response = await create(...args)
  assert.equal(response.status, 201, await response.text())
  const location = response.headers.get('location') ?? ''
  recordTokens(location, new URL(location).pathname.split('/').at(-1))
  // The Go CLI finds the id there.
  return { location, id: location.split('/').at(-2) ?? '' }
}

export function patch(
  location: string,
  offset: number | string,
  bytes: Uint8Array<ArrayBuffer>,
  headers: Headers = {},
): Promise<Response> {
  return fetch(location, {
    method: 'PATCH',
    headers: {
      'content-type': 'application/offset+octet-stream',
      'upload-offset': `${offset}`,
      ...headers,
    },
    body: bytes,
  })
}

export const head = (location: string): Promise<Response> => fetch(location, { method: 'HEAD', headers: TUS })

/** Sends all bytes in chunks of `size`. Resolves to the last response. */
export async function sendAll(
  location: string,
  bytes: Uint8Array<ArrayBuffer>,
  size: number,
  headers: Headers = {},
): Promise<Response> {
  for (let offset = 0; ; offset += size) {
    const answer = await patch(location, offset, bytes.subarray(offset, offset + size), headers)
    assert.equal(answer.status, 204, await answer.text())
    if (offset + size >= bytes.length) return answer
  }
}

/** Uploads all bytes. Resolves to the CID in the last response. */
export async function upload(
  client: Caller,
  bytes: Uint8Array<ArrayBuffer>,
  metadata: Record<string, string> = {},
): Promise<{ id: string; location: string; cid: string }> {
  const begun = await begin(client, bytes.length, metadata)
  const last = await sendAll(begun.location, bytes, bytes.length || 1)
  return { ...begun, cid: last.headers.get('upload-cid') ?? '' }
}

/**
 * Announces a piece, sends a part of it, and stays connected. The returned function disconnects; `answered` resolves
 * when Berth has closed the connection or responded.
 */
export function sendPart(
  location: string,
  offset: number,
  part: Uint8Array,
  announced: number,
  headers: Headers = TUS,
): { hangUp(): void; answered: Promise<void> } {
  const sending = request(location, {
    method: 'PATCH',
    headers: {
      'content-type': 'application/offset+octet-stream',
      'content-length': announced,
      'upload-offset': offset,
      ...headers,
    },
  })
  const answered = new Promise<void>((resolve) => {
    sending.once('response', (response) => response.resume().once('close', resolve))
    sending.once('error', () => resolve())
  })
  sending.write(part)
  return { hangUp: () => sending.destroy(), answered }
}

/** Bytes that are the same for the same name, and from which no type can be detected. */
export function bytesOf(name: string, length: number): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(createHash('shake128', { outputLength: length }).update(name).digest())
}
