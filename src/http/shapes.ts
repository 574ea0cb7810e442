/** Shapes that many routes share. */
import { z } from 'zod'
import { badRequest } from '../errors.ts'
import { isUuid } from '../lib/read.ts'
import { isVisible } from '../lib/visible.ts'
import '../lib/zod-messages.ts'
import { contentCid, like } from './fields.ts'

/** Text that PostgreSQL can store: no NUL, no half of a surrogate pair. */
export const text = (max: number) =>
  z
    .string()
    .max(max)
    .refine(
      (value) => !value.includes('\0') && value.isWellFormed(),
      'must not contain NUL or broken Unicode',
    )

const HAS_VISIBLE = 'must have a visible character'

/** A text for people to read, without surrounding whitespace. */
export const visibleText = (max: number) => text(max).trim().min(1).refine(isVisible, HAS_VISIBLE)

/** A name of content; empty means that it has no name. */
export const optionalName = (max: number) =>
  text(max).refine((name) => name === '' || isVisible(name), HAS_VISIBLE)

/** A CID in any version and multibase. The OpenAPI document declares the format; `files/cid.ts` parses it. */
export const cid = contentCid.meta({ format: 'cid' })

/** For the OpenAPI document: an object must have one of these fields. */
export const oneOrMore = (...names: readonly string[]) => ({
  anyOf: names.map((name) => ({ type: 'object' as const, required: [name] })),
})

/** An id in a path. An invalid UUID matches no row: it is replaced with an unused id, and results in a 404. */
export const pathId = z
  .string()
  .transform((id) => (isUuid(id) ? id.toLowerCase() : NO_ID))
  .meta({ format: 'uuid' })
const NO_ID = '00000000-0000-0000-0000-000000000000'

/**
 * A parameter as one text. For aliases with `*name`, whose path contains slashes, Express provides an array of
 * segments.
 */
export const joinSegments = (value: unknown) => (Array.isArray(value) ? value.join('/') : value)

/** A time in RFC 3339. */
export const time = z.iso.datetime({ offset: true, error: 'must be a time as in RFC 3339' })

/** `?limit=`: the number of items per page. */
export const limit = (fallback: number, max: number) =>
  z
    .string()
    .regex(/^\d{1,9}$/, 'must be a whole number')
    .transform(Number)
    .pipe(z.number().min(1).max(max))
    .default(fallback)

/** Sort order by age; the npm SDK spells descending as `DSC`. */
export const order = z
  .string()
  .toUpperCase()
  .pipe(z.enum(['ASC', 'DESC', 'DSC'], 'must be ASC or DESC'))
  .transform((value) => (value === 'ASC' ? 'ASC' : 'DESC'))

/** `?pageToken=`. */
const pageToken = text(255).meta({ format: 'page-token' })

/** The token of the next page: the last item's id in base64, empty on the last page. */
export function nextPageToken(items: { id: string }[], pageSize: number): string {
  const last = items.length > pageSize ? items[pageSize - 1] : undefined
  return last ? Buffer.from(last.id).toString('base64') : ''
}

/** For lists that return the next page's token in a header: the text for the description, and the header. */
export const PAGED_BY_HEADER =
  'If there are more than `limit`, the `Next-Page-Token` header has the `pageToken` of the next page.'
export const nextPageHeaders = (token: string): { headers?: Record<string, string> } =>
  token ? { headers: { 'Next-Page-Token': token } } : {}

/** The id inside a page token. @throws ApiError 400 for a token that Berth cannot have issued. */
export function readPageToken(token: string | undefined): string | undefined {
  if (!token) return undefined
  const id = Buffer.from(token, 'base64').toString('latin1')
  if (isUuid(id)) return id
  throw badRequest('pageToken: not a token of this API')
}

/** The query of a list. */
export const paging = (fallback: number, max: number) => ({
  limit: limit(fallback, max),
  pageToken: pageToken.optional(),
})

/** `next_page_token` of the last page. */
export const noNextPage = like('')

/** The body of a list: `{"data": {"<name>": […], "next_page_token": "…"}}`. */
export const pageOf = (name: string, item: z.ZodType) =>
  z.object({ data: z.object({ [name]: z.array(item), next_page_token: noNextPage }) })

/**
 * A page of a list, in the format of {@link pageOf}. @param found one item more than `limit` if another page follows.
 */
export const toPage = <T extends { id: string }>(
  name: string,
  found: T[],
  limit: number,
  view: (item: T) => unknown = (item) => item,
) => ({ data: { [name]: found.slice(0, limit).map(view), next_page_token: nextPageToken(found, limit) } })

/** The id of a group in a body or a query. */
export const groupId = z.uuid('must be a UUID').toLowerCase()

/** `{network}` in a path. */
export const network = z.enum(['public', 'private'], 'must be public or private')

export const nothing = z.object({ data: z.null() })

/**
 * Parses an input outside of a route's declaration.
 * @param field the name of the field that it is the value of, if it is not a whole body.
 * @throws ApiError 400 naming the first invalid field.
 */
export function parseInput<S extends z.ZodType>(schema: S, input: unknown, field?: string): z.output<S> {
  const parsed = schema.safeParse(input)
  if (parsed.success) return parsed.data
  throw badRequest(describeIssue(parsed.error, field))
}

/** Describes an invalid input: the first invalid field, and why. */
export function describeIssue({ issues: [issue] }: z.ZodError, field?: string): string {
  // The issue of an invalid key is nested. The key itself may be anything, and is not repeated.
  const key = issue?.code === 'invalid_key' ? issue.issues[0] : undefined
  const inner = issue?.path.slice(0, key ? -1 : undefined) ?? []
  const path = fieldPath(field === undefined ? inner : [field, ...inner])
  return `${path || 'body'}: ${(key ?? issue)?.message}`
}

/**
 * Describes an invalid query. A parameter that is given twice is a list to the server's parser, but not to its client.
 */
export function describeQueryIssue(error: z.ZodError, query: unknown): string {
  const path = error.issues[0]?.path ?? []
  const value = path.reduce((inner, key) => (inner as Record<PropertyKey, unknown> | undefined)?.[key], query)
  return Array.isArray(value) ? `${fieldPath(path)}: given twice` : describeIssue(error)
}

/** Path of a field in clients' notation: `mappings[0].port`. */
const fieldPath = (path: PropertyKey[]): string =>
  path
    .map((part) => (typeof part === 'number' ? `[${part}]` : `.${String(part)}`))
    .join('')
    .replace(/^\./, '')
