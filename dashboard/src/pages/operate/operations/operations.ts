/** Describes operations in words for the pages. */

import type { operations, paths } from '../../../api/client.ts'
import { api, unwrap } from '../../../api/client.ts'
import { bytes } from '../../../parts/format.ts'
import { texts } from '../../../texts.ts'

const t = texts.operate.operations

export type Operation =
  paths['/v0/operations/{id}']['get']['responses'][200]['content']['application/json']['data']
export type OperationQuery = NonNullable<operations['listOperations']['parameters']['query']>

export const KINDS = Object.keys(t.kinds) as Operation['kind'][]
export const STATES = Object.keys(t.states) as Operation['state'][]

export async function readOperations(query: OperationQuery) {
  const { data } = await unwrap(api.GET('/v0/operations', { params: { query } }))
  return { items: data.operations, next: data.next_page_token }
}

export const isOver = ({ state }: Operation): boolean => state !== 'queued' && state !== 'running'

/** The step and progress of an operation; for a pin, the progress in blocks and bytes. */
export function progressOf({ step, progress }: Operation): string {
  const { blocks, bytes: size } = progress ?? {}
  return [
    step && (t.stepWords[step] ?? step),
    typeof blocks === 'number' && t.blocks(blocks),
    typeof size === 'number' && bytes(size),
  ]
    .filter(Boolean)
    .join(' · ')
}

/** Why an operation failed, or why it is retried. */
export const causeOf = ({ error_code }: Operation): string | undefined =>
  error_code ? (t.causes[error_code] ?? error_code) : undefined

/** How long an operation took, or has taken so far. */
export function tookOf({ started_at, finished_at }: Operation): string {
  if (!started_at) return ''
  const ms = (finished_at ? Date.parse(finished_at) : Date.now()) - Date.parse(started_at)
  const seconds = Math.max(0, ms / 1000)
  if (seconds < 60) return `${seconds.toLocaleString('en', { maximumFractionDigits: 1 })} s`
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${Math.floor(seconds % 60)} s`
  return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`
}
