/** Lists in pages, read as one. */
import { type Result, unwrap } from './errors.ts'

type Lists<T> = Extract<T[keyof T], readonly unknown[]>
type Item<Body> = Body extends { data: infer Data } ? Lists<Data>[number] : Lists<Body>[number]

/**
 * All items of a list. Pages are read as they are needed.
 * @param read reads one page; `page` is part of its query.
 */
export async function* allItems<Body>(
  read: (page: { pageToken?: string }) => Promise<Result<Body>>,
): AsyncGenerator<Item<Body>> {
  for (let page: { pageToken?: string } = {}; ; ) {
    const result = await read(page)
    const body = (await unwrap(result)) as Record<string, unknown>
    const list = (body.data ?? body) as Record<string, unknown>
    const items = Object.values(list).find(Array.isArray) as Item<Body>[] | undefined
    yield* items ?? []
    const next = list.next_page_token ?? result.response.headers.get('next-page-token')
    if (!next) return
    page = { pageToken: String(next) }
  }
}
