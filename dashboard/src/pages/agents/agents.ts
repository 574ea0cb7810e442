/** All agents of the workspace: the page itself searches and sorts lists. */
import { useQuery } from '@tanstack/react-query'
import { api, unwrap } from '../../api/client.ts'
import { texts } from '../../texts.ts'
import { shownState } from './failure.ts'
import { type Shown, type Sort, STATES } from './shown.ts'

const PAGE = 1000
/** The interval of the agents' measurements. */
const USAGE_MS = 15_000

type PageQuery = { params: { query: { limit: number; pageToken?: string } } }

/** Reads all pages of a list whose responses have the token of the next page in a header. */
async function readAll<Page>(
  get: (query: PageQuery) => Promise<{ data?: Page; error?: unknown; response: Response }>,
): Promise<Page[]> {
  const pages: Page[] = []
  for (let pageToken = ''; ; ) {
    const answer = await get({ params: { query: { limit: PAGE, ...(pageToken && { pageToken }) } } })
    pages.push(await unwrap(Promise.resolve(answer)))
    pageToken = answer.response.headers.get('next-page-token') ?? ''
    if (!pageToken) return pages
  }
}

async function readAgents() {
  const pages = await readAll((query) => api.GET('/v0/agents', query))
  return { agents: pages.flatMap(({ agents }) => agents), agentLimit: pages[0]?.agentLimit ?? null }
}
export type Agent = Awaited<ReturnType<typeof readAgents>>['agents'][number]

export const useAgents = (isOn = true) =>
  useQuery({ queryKey: ['agents'], queryFn: readAgents, enabled: isOn })

async function readUsage() {
  const pages = await readAll((query) => api.GET('/v0/agents/usage', query))
  return new Map(pages.flatMap(({ usage }) => usage).map((one) => [one.agentId, one]))
}
export type Usage = Awaited<ReturnType<typeof readUsage>>
export type Used = Usage extends Map<string, infer One> ? One : never

/** The current memory use, by agent. */
export const useUsage = () =>
  useQuery({ queryKey: ['agents', 'usage'], queryFn: readUsage, refetchInterval: USAGE_MS })

/** The newest operation that starts the agent. Events refetch it at each step. */
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

const rankOf = (agent: Agent) => (STATES as readonly string[]).indexOf(shownState(agent))
type Order = (a: Agent, b: Agent) => number
const ORDERS: Record<Exclude<Sort, 'memory'>, Order> = {
  name: (a, b) => a.name.localeCompare(b.name, 'en', { numeric: true, sensitivity: 'base' }),
  newest: (a, b) => b.createdAt.localeCompare(a.createdAt),
  oldest: (a, b) => a.createdAt.localeCompare(b.createdAt),
  state: (a, b) => rankOf(b) - rankOf(a) || ORDERS.name(a, b),
}

export function select(
  agents: Agent[],
  { q = '', state, sort = 'name' }: Shown,
  usage: Usage = new Map(),
): Agent[] {
  const words = q.toLowerCase().split(/\s+/).filter(Boolean)
  const found = agents.filter((agent) => {
    const { agentId, name, description } = agent
    const text = `${name} ${description ?? ''} ${agentId}`.toLowerCase()
    return (!state || shownState(agent) === state) && words.every((word) => text.includes(word))
  })
  const used = ({ agentId }: Agent) => usage.get(agentId)?.memoryBytes ?? 0
  return found.sort(sort === 'memory' ? (a, b) => used(b) - used(a) || ORDERS.name(a, b) : ORDERS[sort])
}

export const stateWord = (state: string): string => texts.overview.states[state] ?? state
