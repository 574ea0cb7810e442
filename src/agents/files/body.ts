/** The body of an upload: larger than any other JSON of the API, and in memory until the agent has received it. */
import type { IncomingMessage } from 'node:http'
import { ApiError, badRequest, contractError, messages } from '../../errors.ts'
import { refuseEncoded } from '../../http/request-headers.ts'

const BODY_MS = 60_000
/** For the file's name and other small fields. */
const ENVELOPE_BYTES = 65_536

/**
 * Maximum bytes of a JSON body with this many bytes of content. Some clients escape slashes, so there is a small
 * margin.
 */
export const bodyLimit = (contentBytes: number): number =>
  Math.ceil((base64Length(contentBytes) * 17) / 16) + ENVELOPE_BYTES

const base64Length = (bytes: number): number => Math.ceil(bytes / 3) * 4

/** Limits the memory of all uploads in a process together: uploads over the limit are refused, not queued. */
export class UploadMemory {
  readonly #bytes: number
  readonly #share: number
  #taken = 0
  /** The bytes that each workspace holds; workspaces without any are not in the map. */
  readonly #shares = new Map<string, number>()

  /** @param share the part of `bytes` that one workspace may use. */
  constructor(bytes: number, share: number) {
    this.#bytes = bytes
    this.#share = share
  }

  /** @throws ApiError 429 if that is too much for the workspace, 503 `busy` if it is too much in total. */
  take(workspaceId: string, bytes: number): void {
    const share = (this.#shares.get(workspaceId) ?? 0) + bytes
    const headers = { 'retry-after': '5' }
    if (share > this.#share)
      throw new ApiError(429, 'too_many_at_a_time', 'Too many uploads of this workspace at a time', {
        headers,
      })
    if (this.#taken + bytes > this.#bytes)
      throw new ApiError(503, 'busy', 'Too many uploads at a time: try again', { headers })
    this.#shares.set(workspaceId, share)
    this.#taken += bytes
  }

  give(workspaceId: string, bytes: number): void {
    const share = (this.#shares.get(workspaceId) ?? 0) - bytes
    if (share > 0) this.#shares.set(workspaceId, share)
    else this.#shares.delete(workspaceId)
    this.#taken -= bytes
  }
}

/**
 * Reads a JSON body and passes it to `work`; its bytes count against `memory` until `work` is done. After a refusal the
 * rest of the body is discarded (`discardUnread`), so that the client sees the response.
 * @throws ApiError 413 `File too large`, 408 if it takes too long, 415 if it is compressed, 400 if it is not JSON.
 */
export async function withJsonBody<T>(
  req: IncomingMessage,
  { memory, workspaceId }: { memory: UploadMemory; workspaceId: string },
  maxBytes: number,
  work: (body: unknown) => Promise<T>,
): Promise<T> {
  refuseEncoded(req)
  if (Number(req.headers['content-length']) > maxBytes) throw tooLarge()
  let taken = 0
  try {
    const bytes = await readBody(req, (size) => {
      if (taken + size > maxBytes) throw tooLarge()
      memory.take(workspaceId, size)
      taken += size
    })
    return await work(parse(bytes))
  } finally {
    memory.give(workspaceId, taken)
  }
}

export const tooLarge = () => contractError(413, 'too_large', messages.fileTooLarge)

/** @param admit called with the size of each chunk; ends the reading by throwing. */
function readBody(req: IncomingMessage, admit: (size: number) => void): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    const end = (settle: () => void) => {
      clearTimeout(late)
      // Not destroyed, as leaving a loop over it would do: the response needs its connection.
      req.pause().off('data', take).off('end', complete).off('close', gone)
      settle()
    }
    const fail = (error: Error) => end(() => reject(error))
    const take = (chunk: Buffer) => {
      try {
        admit(chunk.length)
        chunks.push(chunk)
      } catch (error) {
        fail(error as Error)
      }
    }
    const complete = () => end(() => resolve(Buffer.concat(chunks)))
    const gone = () => fail(badRequest('body: was cut off'))
    const late = setTimeout(
      () => fail(new ApiError(408, 'timeout', `body: did not arrive within ${BODY_MS / 1000} seconds`)),
      BODY_MS,
    )
    req.on('data', take).once('end', complete).once('close', gone)
  })
}

function parse(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8'))
  } catch {
    throw badRequest('body: not valid JSON')
  }
}

/**
 * Decodes base64 only in its canonical form: alphabet of RFC 4648 section 4, padding, no stray bits, no spaces.
 * @throws ApiError 400; 413 for more than `maxBytes`.
 */
export function decodeBase64(text: string, maxBytes: number): Buffer {
  if (text.length > base64Length(maxBytes)) throw tooLarge()
  const bytes = Buffer.from(text, 'base64')
  if (bytes.toString('base64') !== text) {
    throw badRequest('contentBase64: must be base64 with padding, without a data-URL prefix')
  }
  if (bytes.length > maxBytes) throw tooLarge()
  return bytes
}
