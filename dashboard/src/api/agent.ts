import { useQuery } from '@tanstack/react-query'
import { useParams } from '@tanstack/react-router'
import { AT_ONCE, useChange } from './change.ts'
import { api, unwrap } from './client.ts'

/** The agent in the URL. */
export function useAgent() {
  const { agentId } = useParams({ from: '/shell/dashboard/agents/$agentId' })
  const { data, error } = useQuery({
    queryKey: ['agents', agentId],
    queryFn: () => unwrap(api.GET('/v0/agents/{agentId}', { params: { path: { agentId } } })),
  })
  return { agentId, agent: data?.agent, error }
}

/** Restarts an agent. The page shows the steps of the start without further calls. */
export const useRestart = (agentId: string) =>
  useChange(() =>
    unwrap(api.POST('/v0/agents/{agentId}/restart', { params: { path: { agentId }, header: AT_ONCE } })),
  )
