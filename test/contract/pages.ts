import assert from 'node:assert/strict'
import type { Client } from '../support/client.ts'

const MAX_PAGES = 100

/** Collects all items of a list, page by page; asserts that each page except the last is full. */
export async function collectPages(
  api: Client,
  path: string,
  name: string,
  query: Record<string, string>,
): Promise<{ id: string }[]> {
  const items: { id: string }[] = []
  let pageToken = ''
  for (let page = 0; page < MAX_PAGES; page++) {
    const { body } = await api.get(path, { ...query, ...(pageToken && { pageToken }) })
    items.push(...body.data[name])
    pageToken = body.data.next_page_token
    if (!pageToken) return items
    assert.equal(body.data[name].length, Number(query.limit ?? 10), 'a page with a successor is full')
  }
  throw new Error(`${path} has more than ${MAX_PAGES} pages`)
}
