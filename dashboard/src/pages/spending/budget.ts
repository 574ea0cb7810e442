/** Budgets of a workspace or an agent, and changes of them. */
import { useQuery } from '@tanstack/react-query'
import { useChange } from '../../api/change.ts'
import { api, unwrap } from '../../api/client.ts'

/** Spending uses up a budget without an event for each request. */
const EACH_MS = 15_000

const readBudget = () => unwrap(api.GET('/v0/model/budget'))
export type Budget = Awaited<ReturnType<typeof readBudget>>['data']
export type Period = 'day' | 'month'
export const PERIODS: readonly Period[] = ['day', 'month']

/** The limits to set; null means no limit. They replace all limits. */
type Limits = Record<Period, { usd: string | null; tokens: number | null }> & {
  requestsPerMinute: number | null
}

/** The budget of the workspace. */
export const useBudget = () =>
  useQuery({ queryKey: ['model', 'budget'], queryFn: readBudget, refetchInterval: EACH_MS })

/** Replaces the limits of an agent, or of the workspace if it is undefined. */
export const useSetBudget = (agentId: string | undefined, onSuccess: () => void) =>
  useChange<unknown, Limits>(
    (body) =>
      unwrap(
        agentId
          ? api.PUT('/v0/agents/{agentId}/model/budget', { params: { path: { agentId } }, body })
          : api.PUT('/v0/model/budget', { body }),
      ),
    onSuccess,
  )

/** The access of an agent to models: its providers and budget, and why calls are refused. */
export const useModelAccess = (agentId: string) =>
  useQuery({
    queryKey: ['model', agentId],
    queryFn: () => unwrap(api.GET('/v0/agents/{agentId}/model', { params: { path: { agentId } } })),
    refetchInterval: EACH_MS,
  })
