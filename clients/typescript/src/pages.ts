/** Lists in pages, read as one. */
import { type Result, unwrap } from './errors.ts'

type Lists<T> = Extract<T[keyof T], readonly unknown[]>
type Item<Body> = Body extends { data: infer Data } ? Lists<Data>[number] : Lists<Body>[number]

/**
 * All items of a list. Pages are read as they are needed.
 * @param read reads one page: pass the token on as `pageToken`, undefined for the first page.
 */
export async function* allItems<Body>(
  read: (pageToken: string | undefined) => Promise<Result<Body>>,
): AsyncGenerator<Item<Body>> {
  for (let pageToken: string | undefined; ; ) {
    const result = await read(pageToken)
    const body = (await unwrap(result)) as Record<string, unknown>
    const page = (body.data ?? body) as Record<string, unknown>
    const items = Object.values(page).find(Array.isArray) as Item<Body>[] | undefined
    yield* items ?? []
    const next = page.next_page_token ?? result.response.headers.get('next-page-token')
    if (!next) return
    pageToken = String(next)
  }
}
