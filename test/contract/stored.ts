import assert from 'node:assert/strict'
import type { Client } from '../support/client.ts'

export const NETWORKS = ['public', 'private'] as const
export type Network = (typeof NETWORKS)[number]

/** Uploads a text or bytes as a file; resolves to its record. */
export async function store(
  client: Client,
  network: Network,
  content: string | Uint8Array<ArrayBuffer>,
  { keyvalues, ...details }: { name?: string; group_id?: string; keyvalues?: Record<string, string> } = {},
): Promise<any> {
  const form = new FormData()
  const fields = { ...details, network, ...(keyvalues && { keyvalues: JSON.stringify(keyvalues) }) }
  for (const [name, value] of Object.entries(fields)) form.set(name, value)
  form.set('file', new Blob([content]), 'file.txt')
  const encoded = new Response(form)
  const reply = await client.request('POST', '/v3/files', {
    body: new Uint8Array(await encoded.arrayBuffer()),
    headers: { 'content-type': encoded.headers.get('content-type') ?? '' },
  })
  assert.equal(reply.status, 200, JSON.stringify(reply.body))
  return reply.body.data
}
