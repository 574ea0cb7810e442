import { useQuery } from '@tanstack/react-query'
import type { paths } from '../../../api/client.ts'
import { api, unwrap } from '../../../api/client.ts'

const ROUTE = '/v0/agents/{agentId}/config/schema'

export type Place = paths[typeof ROUTE]['get']['responses'][200]['content']['application/json']
export type Key = Place['children'][number]

/** The engine's schema at a path; the root for an empty path. */
export const useSchema = (agentId: string, path: string) =>
  useQuery({
    queryKey: ['agents', agentId, 'config', 'schema', path],
    queryFn: () => unwrap(api.GET(ROUTE, { params: { path: { agentId }, query: path ? { path } : {} } })),
    staleTime: 5 * 60_000,
  })
