/**
 * The formats in which a client may request content, including those for clients that verify it themselves: a block, or
 * a CAR.
 */
import { createHash } from 'node:crypto'
import type { Request } from 'express'
import type { CID } from 'multiformats/cid'
import { badRequest } from '../../errors.ts'
import { carHeader, carSection } from '../../storage/dag/car.ts'
import { type ByteSpan, blocksOf, type DagPart } from '../../storage/dag/parts.ts'
import type { Storage } from '../../storage/port.ts'
import type { Walked } from './content.ts'
import { namedDisposition } from './file.ts'
import { inMemory, type Representation } from './respond.ts'

export const MEDIA_TYPES = {
  raw: 'application/vnd.ipld.raw',
  car: 'application/vnd.ipld.car',
  tar: 'application/x-tar',
  'dag-json': 'application/vnd.ipld.dag-json',
  'dag-cbor': 'application/vnd.ipld.dag-cbor',
  json: 'application/json',
  cbor: 'application/cbor',
  html: 'text/html',
} as const

export type Format = keyof typeof MEDIA_TYPES

const NAMES = Object.keys(MEDIA_TYPES).filter((name) => name !== 'html')

interface Asked {
  format: Format
  /** Parameters of the media type, by their lower-case names. */
  parameters: Map<string, string>
}

/**
 * The format that the client wants instead of the file itself: `?format=`, otherwise the first supported one in
 * `Accept`. The header's parameters also apply to the query's format. @throws ApiError 400 for an unknown format.
 */
export function askedFormat(req: Request, { searchParams }: URL): Asked | undefined {
  const accepted = acceptedFormats(req.get('accept') ?? '')
  const named = searchParams.get('format')
  if (named === null) return accepted[0]
  if (!NAMES.includes(named)) throw badRequest(`format: must be one of ${NAMES.join(', ')}`)
  const format = named as Format
  return accepted.find((one) => one.format === format) ?? { format, parameters: new Map() }
}

/** The formats of an `Accept` header, most wanted first. */
function acceptedFormats(header: string): Asked[] {
  const all = header.split(',').flatMap((range) => {
    const [type = '', ...rest] = range.split(';').map((part) => part.trim().toLowerCase())
    const found = Object.entries(MEDIA_TYPES).find(([, mediaType]) => mediaType === type)
    if (!found) return []
    const parameters = new Map(rest.map((part) => part.split('=', 2) as [string, string]))
    const weight = Number(parameters.get('q') ?? 1)
    return weight > 0 ? [{ format: found[0] as Format, parameters, weight }] : []
  })
  return all.sort((a, b) => b.weight - a.weight)
}

/** An unmodified block of any codec. */
export function blockRepresentation({ entry: { cid }, block }: Walked, url: URL): Representation {
  return {
    etag: `"${cid}.raw"`,
    headers: {
      'Content-Type': MEDIA_TYPES.raw,
      ...namedDisposition(url, `${cid}.bin`, 'attachment'),
    },
    ...inMemory(block),
  }
}

/**
 * A CAR of the blocks of a path and of the content at its end, depth first. `dag-scope` and `entity-bytes` select how
 * much of that, and `car-dups` whether repeated blocks are sent again.
 * @throws ApiError 400 for unknown parameters.
 */
export function carRepresentation(
  storage: Storage,
  { entry: { cid }, roots, path }: Walked,
  parameters: Map<string, string> | undefined,
  url: URL,
): Representation {
  const { searchParams } = url
  const choice = (name: string, known: string[]): string | undefined => {
    const value = searchParams.get(`car-${name}`) ?? parameters?.get(name)
    if (value === undefined || known.includes(value)) return value
    throw badRequest(`car-${name}: must be ${known.join(' or ')}`)
  }
  choice('version', ['1'])
  choice('order', ['dfs', 'unk'])
  const duplicates = choice('dups', ['y', 'n']) === 'y'
  const root = roots[0] as CID
  const part: DagPart = { path, root: cid, ...readScope(searchParams), duplicates }
  const { scope, bytes } = part
  // The store exports a whole DAG in one call.
  const isWhole = scope === 'all' && path.length === 0 && !duplicates
  const kind = JSON.stringify([`${root}`, path.map(String), scope, bytes, duplicates])
  const tag = createHash('sha256').update(kind).digest('base64url').slice(0, 16)
  return {
    // The store may determine the order of the blocks, so the tag is weak.
    etag: `W/"${cid}.car.${scope}.${tag}"`,
    headers: {
      'Content-Type': `${MEDIA_TYPES.car}; version=1; order=dfs; dups=${duplicates ? 'y' : 'n'}`,
      ...namedDisposition(url, `${cid}.car`, 'attachment'),
    },
    read: (_from, _to, signal) =>
      isWhole ? storage.exportCar(cid, { signal }) : carOf(storage, root, part, signal),
  }
}

async function* carOf(
  storage: Storage,
  root: CID,
  part: DagPart,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  yield carHeader(root)
  const read = (cid: CID) => storage.block(cid, { signal })
  for await (const block of blocksOf(part, { read, signal })) yield* carSection(block)
}

function readScope(searchParams: URLSearchParams): Pick<DagPart, 'scope' | 'bytes'> {
  const span = searchParams.get('entity-bytes')
  const scope = searchParams.get('dag-scope') ?? (span === null ? 'all' : 'entity')
  if (scope !== 'all' && scope !== 'entity' && scope !== 'block') {
    throw badRequest('dag-scope: must be all, entity or block')
  }
  if (span === null) return { scope }
  if (scope !== 'entity') throw badRequest('entity-bytes: needs dag-scope=entity')
  return { scope, bytes: readSpan(span) }
}

function readSpan(text: string): ByteSpan {
  const [, from, to] = /^(-?\d{1,15}):(-?\d{1,15}|\*)$/.exec(text) ?? []
  if (from === undefined || to === undefined)
    throw badRequest('entity-bytes: must be <from>:<to>, or <from>:*')
  return { from: Number(from), to: to === '*' ? to : Number(to) }
}
