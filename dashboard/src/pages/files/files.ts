/** Queries and mutations that the file pages share. */
import { useQuery } from '@tanstack/react-query'
import type { paths } from '../../api/client.ts'
import { api, unwrap } from '../../api/client.ts'

export type Network = 'public' | 'private'
export const NETWORKS: readonly Network[] = ['public', 'private']

type Page = paths['/v3/files/{network}']['get']['responses'][200]['content']['application/json']
export type FileRecord = Page['data']['files'][number]

/** The API's maximum page size. */
const ALL = 1000

/** The groups of a network, newest first. */
export function useGroups(network: Network) {
  const query = useQuery({
    queryKey: ['groups', network],
    queryFn: () =>
      unwrap(api.GET('/v3/groups/{network}', { params: { path: { network }, query: { limit: ALL } } })),
  })
  return { ...query, groups: query.data?.data.groups ?? [] }
}

/** The gateways of the workspace, oldest first. */
export function useGateways() {
  const query = useQuery({ queryKey: ['gateways'], queryFn: () => unwrap(api.GET('/v3/gateways')) })
  return { ...query, gateways: query.data?.data.rows ?? [] }
}
export type Gateway = ReturnType<typeof useGateways>['gateways'][number]

/** The URL of a gateway's host, with the scheme and port of the API. */
export const addressOf = (host: string): string =>
  `${location.protocol}//${host}${location.port && `:${location.port}`}`

/** Creates a link to a private file. */
export async function linkTo(host: string, cid: string, seconds: number): Promise<string> {
  const body = {
    url: `${addressOf(host)}/files/${cid}`,
    method: 'GET' as const,
    date: Math.floor(Date.now() / 1000),
    expires: seconds,
  }
  return (await unwrap(api.POST('/v3/files/private/download_link', { body }))).data
}

/** Changes a file's name, keyvalues or expiry. */
export const changeFile = (
  network: Network,
  id: string,
  body: {
    name?: string | null
    keyvalues?: Record<string, string | null>
    expires_at?: number | null
  },
) => unwrap(api.PUT('/v3/files/{network}/{id}', { params: { path: { network, id } }, body: body as never }))

/** Moves a file into a group, or removes it from its group. */
export async function moveTo(network: Network, file: FileRecord, group: string | null): Promise<void> {
  const id = group ?? file.group_id
  if (id === null) return
  const params = { path: { network, id, fileId: file.id } }
  const path = '/v3/groups/{network}/{id}/ids/{fileId}' as const
  await unwrap(group ? api.PUT(path, { params }) : api.DELETE(path, { params }))
}

/** Runs work on each item with limited concurrency. @returns the number of failures, and the first reason */
export async function forEach<T>(
  items: readonly T[],
  work: (item: T) => Promise<unknown>,
  onDone: (count: number) => void = () => {},
): Promise<{ failed: number; error: Error | undefined }> {
  const rest = [...items]
  let [done, failed, error] = [0, 0, undefined as Error | undefined]
  const take = async () => {
    for (let item = rest.shift(); item !== undefined; item = rest.shift()) {
      await work(item).catch((reason) => {
        failed++
        error ??= reason
      })
      onDone(++done)
    }
  }
  await Promise.all([take(), take(), take(), take()])
  return { failed, error }
}
