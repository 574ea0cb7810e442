import { randomUUID } from 'node:crypto'
import { CID } from 'multiformats/cid'
import { type AddEntry, StorageError } from '../port.ts'
import { PROBE_BYTES, PROBE_CID, PROFILE } from '../profile.ts'
import { asStorageError } from './errors.ts'
import type { KuboRpc } from './rpc.ts'

const PROBE_MS = 10_000
/** Most time that Kubo takes to finish an import, once it has all the bytes. */
const IDLE_MS = 60_000

interface AddRow {
  Name: string
  Hash: string
}

/**
 * Imports files, without a pin, see `Storage.add`.
 * @returns the root and the bytes of all the files together.
 */
export async function importFiles(
  rpc: KuboRpc,
  entries: AsyncIterable<AddEntry>,
  signal: AbortSignal,
): Promise<{ cid: CID; size: number }> {
  const paths: string[] = []
  let size = 0
  async function* counted(): AsyncGenerator<AddEntry> {
    for await (const { path, content } of entries) {
      paths.push(path)
      yield { path, content: count(content) }
    }
  }
  async function* count(content: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    for await (const chunk of content) {
      size += chunk.length
      yield chunk
    }
  }

  let file: string | null = null
  let directory: string | null = null
  try {
    const params = { pin: false, 'wrap-with-directory': true, progress: false }
    const call = { signal, idleMs: IDLE_MS, body: multipart(counted()) }
    for await (const { Name, Hash } of rpc.rows<AddRow>('add', params, call)) {
      if (Name === '') directory = Hash
      else if (Name === paths[0]) file = Hash
    }
  } catch (error) {
    throw asStorageError(error)
  }
  const [path] = paths
  if (path === undefined) throw new StorageError('invalid_object', 'There is nothing to add')
  const root = paths.length === 1 && !path.includes('/') ? file : directory
  if (!root) throw new StorageError('unavailable', 'Kubo ended add without a result')
  return { cid: CID.parse(root), size }
}

/** Checks that Kubo builds the DAGs of the profile by default. @throws Error naming the command that makes it do so. */
export async function checkProfile(rpc: KuboRpc, signal: AbortSignal): Promise<void> {
  async function* probe(): AsyncGenerator<AddEntry> {
    yield {
      path: 'probe',
      content: (async function* () {
        yield PROBE_BYTES
      })(),
    }
  }
  const params = { 'only-hash': true, pin: false, progress: false }
  const { Hash } = await rpc.call<AddRow>('add', params, {
    signal,
    deadlineMs: PROBE_MS,
    body: multipart(probe()),
  })
  if (Hash === `${PROBE_CID}`) return
  throw new Error(
    `Kubo does not import as ${PROFILE}: run \`ipfs config profile apply ${PROFILE}\` on the node and restart it`,
  )
}

/** The body of `add`: each file as a part whose name is its path. */
function multipart(entries: AsyncIterable<AddEntry>): { type: string; content: AsyncIterable<Uint8Array> } {
  const boundary = `berth-${randomUUID()}`
  async function* content(): AsyncGenerator<Uint8Array> {
    for await (const entry of entries) {
      const name = encodeURIComponent(entry.path)
      yield Buffer.from(
        `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="${name}"\r\n` +
          'Content-Type: application/octet-stream\r\n\r\n',
      )
      yield* entry.content
      yield Buffer.from('\r\n')
    }
    yield Buffer.from(`--${boundary}--\r\n`)
  }
  return { type: `multipart/form-data; boundary=${boundary}`, content: content() }
}
