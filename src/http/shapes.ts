/** Shapes that many routes share. */
import { z } from 'zod'
import { badRequest } from '../errors.ts'
import { isUuid } from '../lib/read.ts'
import { isVisible } from '../lib/visible.ts'
import '../lib/zod-messages.ts'
import { contentCid } from './fields.ts'

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
