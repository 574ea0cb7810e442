import { useQuery } from '@tanstack/react-query'
import { useParams } from '@tanstack/react-router'
import { api, unwrap } from './client.ts'

/** The agent that the address names. */
export function useAgent() {
  const { agentId } = useParams({ from: '/shell/dashboard/agents/$agentId' })
  const { data, error } = useQuery({
    queryKey: ['agents', agentId],
    queryFn: () => unwrap(api.GET('/v0/agents/{agentId}', { params: { path: { agentId } } })),
  })
  return { agentId, agent: data?.agent, error }
}
