/** Finds what a person names: agents by id or name, files by id or CID. */
import { allItems, type Berth, unwrap } from '../../typescript/src/index.ts'
import { AdvisedError, EXIT } from './errors.ts'

const AGENT_ID = /^x[0-9a-z]{7}$/
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

export const listAgents = (berth: Berth, most = Number.POSITIVE_INFINITY) =>
  collect(
    allItems((page) => berth.GET('/v0/agents', { params: { query: page } })),
    most,
  )

/** The id of an agent that is named by its id or its name. */
export async function agentIdOf(berth: Berth, named = ''): Promise<string> {
  if (AGENT_ID.test(named)) return named
  const agents = (await listAgents(berth)).filter(({ name }) => name === named)
  const [agent, second] = agents
  if (!agent)
    throw new AdvisedError(`no agent is called ${named}`, 'berth agents ls lists them', EXIT.missing)
  if (second)
    throw new AdvisedError(
      `${agents.length} agents are called ${named}: ${agents.map(({ agentId }) => agentId).join(', ')}`,
      'name one of them by its id',
      EXIT.usage,
    )
  return agent.agentId
}

export type Network = 'public' | 'private'
export const NETWORKS: Network[] = ['public', 'private']

/** The newest file with this id or CID, on either network. */
export async function findFile(berth: Berth, named = '') {
  const found = await Promise.all(
    NETWORKS.map(async (network) => {
      if (UUID.test(named)) {
        const { data, response } = await berth.GET('/v3/files/{network}/{id}', {
          params: { path: { network, id: named } },
        })
        if (response.status === 404) return undefined
        return data && { ...data.data, network }
      }
      const query = { cid: named, limit: 1 }
      const { data } = await unwrap(
        berth.GET('/v3/files/{network}', { params: { path: { network }, query } }),
      )
      return data.files[0] && { ...data.files[0], network }
    }),
  )
  const file = found.find((one) => one !== undefined)
  if (!file)
    throw new AdvisedError(`no file has the id or CID ${named}`, 'berth files ls lists them', EXIT.missing)
  return file
}

/** At most so many items of a list. */
export async function collect<T>(items: AsyncIterable<T>, most: number): Promise<T[]> {
  const read: T[] = []
  for await (const item of items) {
    if (read.length >= most) break
    read.push(item)
  }
  return read
}
