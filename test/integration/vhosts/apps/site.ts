/** An agent with a program on a port, behind a web process, for the tests of pages. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { after, before, beforeEach } from 'node:test'
import { uuidv7 } from 'uuidv7'
import { WebSocketServer } from 'ws'
import { AgentHost } from '../../../support/agent-host.ts'
import { until } from '../../../support/processes.ts'
import { startWorld, type TestAgent, type World } from '../agents/world.ts'

export let world: World
export let agent: TestAgent
export let port: number
/** Handles the next request in place of the program. */
let program: (req: IncomingMessage, res: ServerResponse) => void
export let sockets: WebSocketServer

// It keeps an idle connection for longer than Berth does, even on a busy machine.
const server = createServer({ keepAliveTimeout: 60_000 }, (req, res) => program(req, res))
before(async () => {
  world = await startWorld()
  agent = await world.agent()
  sockets = new WebSocketServer({ server })
  sockets.on('connection', (socket) => {
    socket.on('message', (data, isBinary) => socket.send(data, { binary: isBinary }))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  port = (server.address() as AddressInfo).port
})
after(async () => {
  await world?.stop()
  server.closeAllConnections()
  server.close()
})
/** Responds with the request that it got. */
export const tell = async (req: IncomingMessage, res: ServerResponse) => {
  const { method, url, headers } = req
  res.setHeader('content-type', 'application/json')
  res.end(JSON.stringify({ method, url, headers, body: await text(req) }))
}
beforeEach(() => {
  program = tell
})

/** Makes the program handle this test's requests like this. */
export function serve(next: typeof program): void {
  program = next
}

export interface Page {
  id: string
  host: AgentHost
}

let names = 0
/** A new domain of an agent. */
export async function domain(
  options: { custom?: boolean; isProtected?: boolean; of?: TestAgent; to?: number; status?: string } = {},
): Promise<Page> {
  const { custom = false, isProtected = false, of = agent, to = port, status = 'verified' } = options
  const name = `page${names++}`
  const id = uuidv7()
  await world.pool.query(
    `INSERT INTO domain (id, agent_id, workspace_id, user_id, subdomain, custom_domain, target_port, protected, status)
     SELECT $1, id, workspace_id, user_id, $2, $3, $4, $5, $6 FROM agent WHERE agent_id = $7`,
    [id, custom ? null : name, custom ? `${name}.example.test` : null, to, isProtected, status, of.agentId],
  )
  await world.pool.query(`SELECT pg_notify('berth_agent', $1)`, [of.agentId])
  const host = new AgentHost(world.url, name, undefined, custom ? 'example.test' : 'apps.localhost')
  return { id, host }
}

/** Replaces the path routes of the agent. */
export async function setRoutes(
  ...routes: [prefix: string, port: number, isProtected?: boolean][]
): Promise<void> {
  await world.pool.query(
    'DELETE FROM agent_route WHERE agent_id = (SELECT id FROM agent WHERE agent_id = $1)',
    [agent.agentId],
  )
  for (const [prefix, to, isProtected = false] of routes)
    await world.pool.query('INSERT INTO agent_route SELECT id, $2, $3, $4 FROM agent WHERE agent_id = $1', [
      agent.agentId,
      prefix,
      to,
      isProtected,
    ])
  await world.pool.query(`SELECT pg_notify('berth_agent', $1)`, [agent.agentId])
}

/** Waits until this web process knows of all earlier notifications. */
export const known = (check: () => Promise<boolean>) => until('the change is known', check)
export const isThere = ({ host }: Page) => known(async () => (await host.get('/')).status !== 404)
