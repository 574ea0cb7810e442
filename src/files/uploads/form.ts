import { Readable, Transform } from 'node:stream'
import { Busboy, type BusboyInstance } from '@fastify/busboy'
import type { Request } from 'express'
import { ApiError, badRequest, messages, unavailable } from '../../errors.ts'
import { refuseEncoded } from '../../http/request-headers.ts'
import { crashPoint } from '../../lib/crash-point.ts'

export interface FormField {
  kind: 'field'
  name: string
  value: string
}

/** A part named `file`, with or without a file name. */
export interface FormFile {
  kind: 'file'
  /** The client's path, including slashes; empty if it names none. It is unchecked. */
  path: string
  /** The part's Content-Type; `text/plain` if it has none. */
  type: string
  content: Readable
}

/** Maximum files per upload. */
const MAX_FILES = 10_000
const LIMITS = {
  files: MAX_FILES,
  fields: 32,
  // Larger than ten pairs of metadata of maximum length with every character escaped.
  fieldSize: 128 * 1024,
  headerSize: 16 * 1024,
  headerPairs: 32,
}
/**
 * Files whose beginning was read and that wait to be consumed; beyond this, the form is only read up to another piece
 * of 64 KiB.
 */
const MAX_WAITING = 16
/** Maximum time without a byte from the client, and without a file being consumed. */
const IDLE_MS = 60_000
const MIB = 1_048_576

/**
 * Reads a multipart form part by part, in order, and no faster than the parts are consumed: each file must be read to
 * its end before the next part is requested. If the form ends early, `signal` fires with the reason.
 */
export class UploadForm {
  readonly #req: Request
  readonly #parser: BusboyInstance
  readonly #parts = new Readable({ objectMode: true, read() {} })
  readonly #files = new Set<Readable>()
  readonly #failing = new AbortController()
  readonly #onData: (chunk: Uint8Array) => void
  readonly #onGone: () => void
  readonly #gone: AbortSignal
  /** Passes data to the parser, which waits until a 64 KiB file is read, but not for any number of small files. */
  readonly #gate: Transform
  #open: (() => void) | undefined
  #isWhole = false
  #idle: NodeJS.Timeout | undefined

  /**
   * @param gone fires when the client has disconnected.
   * @throws ApiError 415 for another Content-Type or a compressed body, 400 if the boundary is missing.
   */
  constructor(req: Request, gone: AbortSignal) {
    this.#req = req
    this.#gone = gone
    this.#parser = createParser(req)
    this.#parts.on('error', () => {})
    this.#gate = new Transform({
      transform: (chunk, _encoding, done) => {
        this.#open = () => done(null, chunk)
        this.#openGate()
      },
    })
    this.#listen()

    let received = 0
    this.#onData = (chunk) => {
      this.#expectData()
      if (received < MIB && received + chunk.length >= MIB) crashPoint('mid-upload')
      received += chunk.length
    }
    this.#onGone = () => this.fail(new ApiError(400, 'aborted', 'body: cut off', { cause: gone.reason }))
    gone.addEventListener('abort', this.#onGone)
    req.on('data', this.#onData)
    req.pipe(this.#gate).pipe(this.#parser)
    this.#expectData()
    if (gone.aborted) this.#onGone()
  }

  /** Fires when the form ends early; its reason is the ApiError to return. */
  get signal(): AbortSignal {
    return this.#failing.signal
  }

  /** The parts; can be iterated only once. */
  async *parts(): AsyncGenerator<FormField | FormFile> {
    try {
      yield* this.#parts
    } catch (error) {
      throw this.signal.aborted ? this.signal.reason : error
    }
  }

  /** Ends the form with a reason; only the first reason counts. */
  fail(reason: Error): void {
    if (this.signal.aborted) return
    this.#failing.abort(reason)
    this.close()
  }

  /** Releases everything. Berth discards the rest of the request, so that the client gets to read the response. */
  close(): void {
    clearTimeout(this.#idle)
    this.#gone.removeEventListener('abort', this.#onGone)
    this.#req.off('data', this.#onData)
    this.#req.unpipe(this.#gate)
    this.#gate.unpipe(this.#parser)
    this.#req.resume()
    for (const file of this.#files) file.destroy(this.signal.reason)
    this.#parts.destroy(this.signal.reason)
  }

  /**
   * Restarts the idle timer. A pause is the store's fault: the pipe pauses while the parser accepts no more data. A
   * wait at the end is too.
   */
  #expectData(): void {
    clearTimeout(this.#idle)
    if (this.#isWhole || this.signal.aborted) return
    const isStores = () =>
      this.#req.isPaused() || this.#gate.isPaused() || this.#open !== undefined || this.#req.readableEnded
    this.#idle = setTimeout(() => this.fail(isStores() ? STORE_IDLE() : CLIENT_IDLE()), IDLE_MS)
  }

  #openGate(): void {
    if (this.#files.size >= MAX_WAITING) return
    const open = this.#open
    this.#open = undefined
    open?.()
  }

  #listen(): void {
    this.#parser
      .on('file', (_name, content, path, _encoding, type) => {
        this.#files.add(content)
        content.once('end', () => this.#expectData()).on('error', () => {})
        content.once('close', () => {
          this.#files.delete(content)
          this.#openGate()
        })
        this.#parts.push({ kind: 'file', path: path ?? '', type, content } satisfies FormFile)
      })
      .on('field', (name, value, _nameCut, valueCut) => {
        if (valueCut) this.fail(badRequest(`${name}: larger than ${LIMITS.fieldSize} bytes`))
        else this.#parts.push({ kind: 'field', name: name ?? '', value } satisfies FormField)
      })
      .on('filesLimit', () => this.fail(badRequest(`file: at most ${MAX_FILES} files make a folder`)))
      .on('fieldsLimit', () => this.fail(badRequest(`body: at most ${LIMITS.fields} fields are read`)))
      .on('error', () => this.fail(badRequest('body: not a whole multipart form')))
      .on('finish', () => {
        this.#isWhole = true
        clearTimeout(this.#idle)
        this.#parts.push(null)
      })
  }
}

const CLIENT_IDLE = () => new ApiError(408, 'timeout', `body: nothing arrived for ${IDLE_MS / 1000} seconds`)
const STORE_IDLE = () => unavailable(messages.ipfsUnreachable)

function createParser(req: Request): BusboyInstance {
  refuseEncoded(req)
  const type = req.headers['content-type'] ?? ''
  if (!/^multipart\/form-data\s*(;|$)/i.test(type)) {
    throw new ApiError(415, 'unsupported_media_type', 'Content-Type: must be multipart/form-data')
  }
  try {
    return new Busboy({
      headers: { 'content-type': type },
      preservePath: true,
      isPartAFile: (name) => name === 'file',
      limits: LIMITS,
    })
  } catch {
    throw badRequest('Content-Type: has no boundary')
  }
}
