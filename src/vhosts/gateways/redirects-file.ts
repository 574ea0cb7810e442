/**
 * The file `_redirects` at the root of a site: where paths lead that the site does not have. Only used at a CID's own
 * host, which is a separate origin.
 */
import type { CID } from 'multiformats/cid'
import { ApiError } from '../../errors.ts'
import { decodeName, nameFromUrl, nameToUrl } from '../../storage/dag/names.ts'
import { type Storage, StorageError } from '../../storage/port.ts'

const NAME = '_redirects'
const MAX_BYTES = 64 * 1024
/** Maximum characters of all placeholder values in a URL together: each may occur any number of times. */
const MAX_VALUES = 32_768
const REDIRECTS = [301, 302, 303, 307, 308]
/** With these, content of the site is served at the requested path. */
const REWRITES = [200, 404, 410, 451]
const PLACEHOLDER = /:([A-Za-z]\w*)/g

interface Rule {
  /** The segments of the path; a segment that begins with a colon matches any. */
  from: string[]
  /** Whether the rest of the path may be anything. */
  hasSplat: boolean
  to: string
  status: number
}

/** Where a path leads: to another URL, or to content of the site. */
export type Outcome = { status: number; location: string } | { status: number; names: string[] }

/**
 * The first rule of a site that matches a path. Null if the site has no such rule, or no rules at all.
 * @param names the path's.
 * @param search the query of the request, which is added to a URL.
 * @throws ApiError 500 if the rules cannot be parsed.
 */
export async function findRule(
  storage: Storage,
  site: CID,
  names: string[],
  search: URLSearchParams,
  signal: AbortSignal,
): Promise<Outcome | null> {
  const text = await readRules(storage, site, signal)
  return text === null ? null : followRules(parseRules(text), names, search)
}

async function readRules(storage: Storage, site: CID, signal: AbortSignal): Promise<string | null> {
  const chunks: Uint8Array[] = []
  let size = 0
  try {
    const { cid, type } = await storage.resolve(site, { path: NAME, signal })
    if (type !== 'file') return null
    for await (const chunk of storage.cat(cid, { length: MAX_BYTES + 1, signal })) {
      chunks.push(chunk)
      size += chunk.length
    }
  } catch (error) {
    if (error instanceof StorageError && (error.code === 'not_found' || error.code === 'invalid_object'))
      return null
    throw error
  }
  if (size > MAX_BYTES) throw unreadable(`redirects file size cannot exceed ${MAX_BYTES} bytes`)
  const lines = Buffer.concat(chunks).toString('latin1').split('\n')
  return lines.map((line) => decodeName(Buffer.from(line, 'latin1'))).join('\n')
}

/** The target of the first rule that matches a path. */
export function followRules(rules: Rule[], names: string[], search: URLSearchParams): Outcome | null {
  for (const rule of rules) {
    const values = match(rule, names)
    if (values) return follow(rule, values, search)
  }
  return null
}

/** @throws ApiError 500 naming the invalid line. */
export function parseRules(text: string): Rule[] {
  return text.split(/\r?\n/).flatMap((line, index) => {
    const trimmed = line.trim()
    if (trimmed === '' || trimmed.startsWith('#')) return []
    return [parseRule(trimmed, (fault) => unreadable(`line ${index + 1}: ${fault}`))]
  })
}

function parseRule(line: string, fault: (message: string) => ApiError): Rule {
  const [from = '', to = '', code = '301', ...rest] = line.split(/\s+/)
  if (to === '' || rest.length > 0) throw fault('must be a path, where it leads, and maybe a status')
  const status = /^\d{3}$/.test(code) ? Number(code) : Number.NaN
  if (![...REDIRECTS, ...REWRITES].includes(status)) throw fault(`status ${code} is not supported`)
  if (!from.startsWith('/')) throw fault('the path must begin with a slash')
  const hasSplat = from.endsWith('/*')
  const path = hasSplat ? from.slice(0, -1) : from
  if (path.includes('*')) throw fault('an asterisk must be the whole last segment')
  const segments = path.split('/').filter(Boolean).map(nameFromUrl)
  const placeholders = segments.filter((segment) => segment.startsWith(':'))
  if (new Set(placeholders).size < placeholders.length) throw fault('a placeholder comes twice')
  const isAddress = /^https?:\/\//i.test(to) && URL.canParse(to)
  if (!to.startsWith('/') && !isAddress) throw fault('must lead to a path or an address')
  if (isAddress && !REDIRECTS.includes(status)) throw fault(`status ${status} must lead to a path`)
  return { from: segments, hasSplat, to, status }
}

/** The placeholder values of a rule; null if the path does not match it. */
function match({ from, hasSplat }: Rule, names: string[]): Map<string, string[]> | null {
  if (hasSplat ? names.length < from.length : names.length !== from.length) return null
  const values = new Map<string, string[]>()
  for (const [index, segment] of from.entries()) {
    const name = names[index] as string
    if (segment.startsWith(':')) values.set(segment.slice(1), [name])
    else if (segment !== name) return null
  }
  if (hasSplat) values.set('splat', names.slice(from.length))
  return values
}

function follow({ to, status }: Rule, values: Map<string, string[]>, search: URLSearchParams): Outcome {
  const encoded = new Map(values.entries().map(([name, value]) => [name, value.map(nameToUrl).join('/')]))
  let length = 0
  const location = to.replace(PLACEHOLDER, (placeholder, name) => {
    const value = encoded.get(name) ?? placeholder
    length += value.length
    if (length > MAX_VALUES)
      throw unreadable(`placeholders of a rule have more than ${MAX_VALUES} characters`)
    return value
  })
  if (REDIRECTS.includes(status)) return { status, location: withQuery(location, search) }
  const [path = ''] = location.split(/[?#]/)
  return { status, names: path.split('/').filter(Boolean).map(nameFromUrl) }
}

/** The location with the query of the request, which overrides its own. */
function withQuery(location: string, search: URLSearchParams): string {
  if (search.size === 0) return location
  const [, path = '', query, hash = ''] = /^([^?#]*)(?:\?([^#]*))?(#.*)?$/.exec(location) ?? []
  const merged = new URLSearchParams(query)
  for (const name of new Set(search.keys())) merged.delete(name)
  for (const [name, value] of search) merged.append(name, value)
  return `${path}?${merged}${hash}`
}

const unreadable = (fault: string) =>
  new ApiError(500, 'invalid_redirects', `could not parse ${NAME}: ${fault}`)
