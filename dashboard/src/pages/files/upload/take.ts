/** Starts uploads of chosen or dropped files, if the plan allows them. */
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { api, unwrap } from '../../../api/client.ts'
import { useMe } from '../../../api/me.ts'
import { bytes } from '../../../parts/format.ts'
import { texts } from '../../../texts.ts'
import type { Chosen } from './dropped.ts'
import { add, type Target } from './uploads.ts'

const words = texts.files.upload

/**
 * @returns `take`, which starts the uploads and returns whether it did; `error` with the reason if it did not; and the
 *   plan's limits.
 */
export function useTake(target: Omit<Target, 'workspaceId'>) {
  const workspaceId = useMe().data?.data.workspace.id
  const usage = useQuery({ queryKey: ['usage'], queryFn: () => unwrap(api.GET('/v3/usage')) })
  const [error, setError] = useState<Error | null>(null)
  const limits = usage.data?.data
  const take = (chosen: Chosen[]): boolean => {
    if (!workspaceId) return false
    const problem = refusal(chosen, limits)
    setError(problem ? new Error(problem) : null)
    if (!problem) add(chosen, { ...target, workspaceId })
    return !problem
  }
  return { take, error, setError, limits }
}

interface Limits {
  bytes: number
  limit_bytes: number | null
  max_file_bytes: number | null
}

/** Why the plan would refuse the chosen files; undefined if it allows them. */
function refusal(chosen: Chosen[], limits: Limits | undefined): string | undefined {
  if (!chosen.length) return undefined
  const sizes = chosen.map(({ files }) => files.reduce((sum, { file }) => sum + file.size, 0))
  const empty = chosen.find(({ files }) => files.length === 0)
  if (empty) return words.emptyFolder(empty.name)
  if (!limits) return undefined
  const { limit_bytes, max_file_bytes } = limits
  const large = chosen[sizes.findIndex((size) => max_file_bytes !== null && size > max_file_bytes)]
  if (large && max_file_bytes !== null) return words.tooLarge(large.name, bytes(max_file_bytes))
  const all = sizes.reduce((sum, size) => sum + size, 0)
  const left = limit_bytes === null ? Number.POSITIVE_INFINITY : limit_bytes - limits.bytes
  return all > left ? words.noRoom(bytes(all), bytes(Math.max(left, 0))) : undefined
}
