/** Lists in pages: their query, how a page is read, and the two formats of a page. */
import { z } from 'zod'
import type { Cursor } from '../db/cursor.ts'
import { badRequest } from '../errors.ts'
import { isUuid } from '../lib/read.ts'
import { like } from './fields.ts'
import { limit, text } from './shapes.ts'

/** The query of a list. */
export const paging = (fallback: number, max: number) => ({
  limit: limit(fallback, max),
  pageToken: text(255).meta({ format: 'page-token' }).optional(),
})

interface PageQuery {
  limit: number
  pageToken?: string | undefined
}

export interface Page<T> {
  items: T[]
  /** The token of the next page; empty on the last page. */
  next: string
}

/** The order of a list; a page token is the last item's place in base64. */
interface Order<T> {
  placeOf(item: T): string
  isPlace?(text: string): boolean
}

/**
 * Reads a page of a list that is ordered by id, or by `order`.
 * @param read is asked for one item more than the page has, which shows whether another page follows.
 * @throws ApiError 400 for a page token that Berth cannot have issued.
 */
export function readPage<T extends { id: string }>(
  query: PageQuery,
  read: (cursor: Cursor) => Promise<T[]>,
): Promise<Page<T>>
export function readPage<T>(
  query: PageQuery,
  read: (cursor: Cursor) => Promise<T[]>,
  order: Order<T>,
): Promise<Page<T>>
export async function readPage(
  { limit, pageToken }: PageQuery,
  read: (cursor: Cursor) => Promise<{ id: string }[]>,
  { placeOf, isPlace }: Order<{ id: string }> = { placeOf: ({ id }) => id },
): Promise<Page<unknown>> {
  const found = await read({ after: readPageToken(pageToken, isPlace), limit: limit + 1 })
  const items = found.slice(0, limit)
  const last = found.length > limit && items.at(-1)
  return { items, next: last ? Buffer.from(placeOf(last)).toString('base64') : '' }
}

/** The place inside a page token. @throws ApiError 400 for a token that Berth cannot have issued. */
export function readPageToken(token: string | undefined, isPlace = isUuid): string | undefined {
  if (!token) return undefined
  const place = Buffer.from(token, 'base64').toString('latin1')
  if (isPlace(place)) return place
  throw badPageToken()
}

export const badPageToken = () => badRequest('pageToken: not a token of this API')

/** `next_page_token` of a list's body. */
export const noNextPage = like('').describe('Empty on the last page.')

/** The body of a list: `{"data": {"<name>": […], "next_page_token": "…"}}`. */
export const pageOf = (name: string, item: z.ZodType) =>
  z.object({ data: z.object({ [name]: z.array(item), next_page_token: noNextPage }) })

/** A page in the format of {@link pageOf}. */
export const toPage = <T>(
  name: string,
  { items, next }: Page<T>,
  view: (item: T) => unknown = (item) => item,
) => ({ data: { [name]: items.map(view), next_page_token: next } })

/** For lists that return the next page's token in a header: the text for the description, and the header. */
export const PAGED_BY_HEADER =
  'If there are more than `limit`, the `Next-Page-Token` header has the `pageToken` of the next page.'
export const nextPageHeaders = ({ next }: Page<unknown>): { headers?: Record<string, string> } =>
  next ? { headers: { 'Next-Page-Token': next } } : {}
