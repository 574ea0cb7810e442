/** The agents of the workspace, all of them: lists are searched and sorted here. */
import { useQuery } from '@tanstack/react-query'
import { api, unwrap } from '../../api/client.ts'
import { texts } from '../../texts.ts'
import { type Shown, type Sort, STATES } from './shown.ts'

const PAGE = 1000

async function readAgents() {
  const all = []
  for (let pageToken = ''; ; ) {
    let next = ''
    const query = { limit: PAGE, ...(pageToken && { pageToken }) }
    const page = await unwrap(
      api.GET('/v0/agents', { params: { query } }).then((answer) => {
        next = answer.response.headers.get('next-page-token') ?? ''
        return answer
      }),
    )
    all.push(...page.agents)
    if (!next) return { agents: all, agentLimit: page.agentLimit }
    pageToken = next
  }
}
export type Agent = Awaited<ReturnType<typeof readAgents>>['agents'][number]

export const useAgents = () => useQuery({ queryKey: ['agents'], queryFn: readAgents })

/** The newest operation that has an agent start; events have it read again at each step. */
export const useStart = (agentId: string, isOn = true) =>
  useQuery({
    queryKey: ['operations', 'start', agentId],
    enabled: isOn,
    queryFn: async () => {
      const query = { target: agentId, limit: 10 }
      const { data } = await unwrap(api.GET('/v0/operations', { params: { query } }))
      return (
        data.operations.find(({ kind }) => kind === 'agent.provision' || kind === 'agent.restart') ?? null
      )
    },
  })

const ORDERS: Record<Sort, (a: Agent, b: Agent) => number> = {
  name: (a, b) => a.name.localeCompare(b.name, 'en', { numeric: true, sensitivity: 'base' }),
  newest: (a, b) => b.createdAt.localeCompare(a.createdAt),
  oldest: (a, b) => a.createdAt.localeCompare(b.createdAt),
  state: (a, b) => STATES.indexOf(b.status) - STATES.indexOf(a.status) || ORDERS.name(a, b),
}

export function select(agents: Agent[], { q = '', state, sort = 'name' }: Shown): Agent[] {
  const words = q.toLowerCase().split(/\s+/).filter(Boolean)
  const found = agents.filter(({ agentId, name, description, status }) => {
    const text = `${name} ${description ?? ''} ${agentId}`.toLowerCase()
    return (!state || status === state) && words.every((word) => text.includes(word))
  })
  return found.sort(ORDERS[sort])
}

export const stateWord = (state: string): string => texts.overview.states[state] ?? state
