/** Uploads and downloads as a client makes them, streamed in both directions. */
import { randomBytes } from 'node:crypto'
import { openAsBlob } from 'node:fs'
import { open } from 'node:fs/promises'
import { request } from 'node:http'
import type { Stack } from '../../support/stack.ts'

export interface FileClient {
  /** Uploads a file by multipart. Resolves to its CID. */
  upload(path: string, network: 'public' | 'private'): Promise<string>
  /** Reads a public file through the workspace's gateway and discards it. `firstByteMs` counts from the request. */
  download(cid: string): Promise<{ bytes: number; firstByteMs: number }>
  /** Address and Host header of the gateway, for a load generator. */
  gateway: { url: string; host: string }
}

const CHUNK = 1_000_000

/** Writes this many new random bytes. They are in the page cache afterwards, for the reader of the file. */
export async function fill(path: string, bytes: number): Promise<void> {
  const file = await open(path, 'w')
  for (let written = 0; written < bytes; written += CHUNK) {
    await file.write(randomBytes(Math.min(CHUNK, bytes - written)))
  }
  await file.close()
}

/** A client with a new key of the first workspace. */
export async function createClient(stack: Stack): Promise<FileClient> {
  const headers = { authorization: `Bearer ${await stack.createKey()}` }
  const answer = await fetch(`${stack.url}/v3/gateways`, { headers })
  const { data } = (await answer.json()) as { data: { rows: { domain: string }[] } }
  const { port } = new URL(stack.url)
  const host = `${data.rows[0]?.domain}.gateway.localhost:${port}`
  return {
    gateway: { url: stack.url, host },
    async upload(path, network) {
      const form = new FormData()
      form.set('network', network)
      form.set('file', await openAsBlob(path), 'file')
      const response = await fetch(`${stack.url}/v3/files`, { method: 'POST', headers, body: form })
      const text = await response.text()
      if (!response.ok) throw new Error(`upload: ${response.status} ${text}`)
      return JSON.parse(text).data.cid
    },
    download: (cid) =>
      new Promise((resolve, reject) => {
        const start = performance.now()
        let firstByteMs = Number.NaN
        let bytes = 0
        const sent = request(`${stack.url}/ipfs/${cid}`, { headers: { host } }, (response) => {
          if (response.statusCode !== 200) reject(new Error(`download: ${response.statusCode}`))
          response.on('data', (chunk: Buffer) => {
            if (bytes === 0) firstByteMs = performance.now() - start
            bytes += chunk.length
          })
          response.on('end', () => resolve({ bytes, firstByteMs }))
          response.on('error', reject)
        })
        sent.on('error', reject)
        sent.end()
      }),
  }
}
