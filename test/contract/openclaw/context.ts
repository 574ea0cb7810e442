/** The agent that the files of a run share, and a file's own agents. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { after } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { buildStandIn, STAND_IN } from '../../integration/agents/stand-in.ts'
import { AgentHost, type AgentSocket } from '../../support/agent-host.ts'
import type { Client, Reply } from '../../support/client.ts'
import { ensureEngines } from '../../support/engines.ts'
import { until } from '../../support/processes.ts'
import { stackKind } from '../../support/stack.ts'
import type { Context, Workspace } from '../context.ts'

/** A gateway takes about 10 s to start; several at once on a small machine take a minute. */
const UP_MS = 300_000
const GONE_MS = 180_000
/** As long as Berth itself keeps trying: three starts of an engine in a row take minutes on a busy machine. */
const OPERATION_MS = 600_000
/** An engine that has just started, or is overloaded, stalls for this long on a busy machine. */
const STALL_MS = 60_000
const PAUSE_MS = 250

/** A request with these headers does not wait for its operation. */
export const AT_ONCE = { prefer: 'respond-async' }

export interface TestAgent {
  agentId: string
  /** `/v0/agents/<agentId>`. */
  path: string
  /** The agent's record once it was running. */
  record: Reply['body']
  /** A client of its workspace; both clients retry while the engine stalls. */
  api: Client
  /** A client with the agent's gateway token. */
  gateway: Client
}

/**
 * A running agent, the same one for all files of a run. A file that changes the token, version, lifecycle or workspace
 * history must create its own agent, which costs 10 s and 1 GB.
 */
export async function sharedAgent({ shared }: Pick<Context, 'shared'>, name = 'Shared'): Promise<TestAgent> {
  // The Idempotency-Key ensures that there is only one.
  const made = await create(shared, { name }, { 'idempotency-key': name })
  return running(shared, made.body.agent.agentId)
}

/** Lets other agents talk to a shared agent. Each file asks for all protocols, because files run at the same time. */
export async function offerProtocols({ api, path }: TestAgent): Promise<void> {
  const json = { protocols: ['a2a', 'mcp'] }
  assert.equal((await api.request('PATCH', `${path}/platform/metadata`, { json })).status, 200)
}

/** Like {@link sharedAgent}, for tests that do not call the engine: this agent has a stand-in. */
export async function sharedStandIn(context: Context): Promise<TestAgent> {
  const name = 'Stand-in'
  await useStandIn(context, await context.sharedWorkspace(), { name })
  return sharedAgent(context, name)
}

/**
 * Gives all later agents of a workspace a stand-in for the engine, which starts in a tenth of a second. The API cannot:
 * the version of new agents is a setting of the whole Berth. In a cluster they keep the real engine.
 * @param name of the agents; all agents of the workspace by default.
 */
export async function useStandIn(
  { sql }: Pick<Context, 'sql'>,
  { id }: Pick<Workspace, 'id'>,
  { version = STAND_IN.good, name = '%' }: { version?: string; name?: string } = {},
): Promise<void> {
  if (stackKind === 'kubernetes') return
  if (stackKind === 'real') await buildStandIn(version)
  const trigger = `stand_in_${randomUUID().replaceAll('-', '')}`
  await sql(`CREATE FUNCTION ${trigger}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      NEW.engine_version := '${version}';
      RETURN NEW;
    END $$;
    CREATE TRIGGER ${trigger} BEFORE INSERT ON agent FOR EACH ROW
      WHEN (NEW.workspace_id = '${id}' AND NEW.name LIKE '${name}') EXECUTE FUNCTION ${trigger}()`)
}

/** A new running agent, which is removed after the tests of the file. @param more additional fields of the request. */
export async function newAgent(api: Client, more: Record<string, unknown> = {}): Promise<TestAgent> {
  const made = await create(api, { name: 'Own', ...more })
  const { agentId } = made.body.agent
  after(() => remove(api, agentId))
  return running(api, agentId)
}

/** Deletes an agent, and waits until its container and volume are gone. It may already be deleted. */
export async function remove(api: Client, agentId: string): Promise<void> {
  const reply = await api.delete(`/v0/agents/${agentId}`)
  if (reply.status === 404) return
  const operation = reply.headers.get('operation-id')
  await until(
    `agent ${agentId} is removed`,
    async () => (await api.get(`/v0/operations/${operation}`)).body.data.state === 'succeeded',
    GONE_MS,
  )
}

async function create(api: Client, body: object, headers: Record<string, string> = {}): Promise<Reply> {
  if (stackKind === 'embedded') await ensureEngines()
  const reply = await api.post('/v0/agents', body, { prefer: 'respond-async', ...headers })
  assert.equal(reply.status, 201, JSON.stringify(reply.body))
  return reply
}

/** The agent once it is running. */
export async function running(api: Client, agentId: string): Promise<TestAgent> {
  const path = `/v0/agents/${agentId}`
  const record = await until(
    `agent ${agentId} is up`,
    async () => {
      const { agent } = (await api.get(path)).body
      return agent.status !== 'starting' && agent
    },
    UP_MS,
  )
  assert.equal(record.status, 'running', record.statusReason)
  return { agentId, path, record, api: patient(api), gateway: patient(api.as(record.gatewayToken)) }
}

/** A client of an agent's own host that retries while the engine stalls. */
export function patientHost(url: string, agent: TestAgent): AgentHost {
  const host = new AgentHost(url, agent.agentId, agent.record.gatewayToken)
  const ask = host.ask.bind(host)
  host.ask = (...asked) => whenReady(() => ask(...asked))
  return host
}

function patient(client: Client): Client {
  const one = client.as(client.key)
  one.request = (method, path, options) => {
    const ask = () => client.request(method, path, options)
    // A command does not reach the engine, and must run once.
    return path.endsWith('/console/exec') ? ask() : whenReady(ask)
  }
  return one
}

/**
 * The first response other than a 503 because the engine is not ready; after a minute, that one too. Berth usually
 * responds so before the engine has the request, except if agentd exits or a request takes several calls. Use it only
 * for requests that may run twice.
 */
export async function whenReady<
  T extends {
    status?: number
    statusCode?: number | undefined
    headers: Headers | IncomingHttpHeaders
  },
>(ask: () => Promise<T>): Promise<T> {
  for (const deadline = performance.now() + STALL_MS; ; await delay(PAUSE_MS)) {
    const answer = await ask()
    const { headers, status = answer.statusCode } = answer
    const code = headers instanceof Headers ? headers.get('error-code') : headers['error-code']
    if (status !== 503 || code !== 'agent_not_ready' || performance.now() > deadline) return answer
  }
}

/** A WebSocket of the gateway once it asks for authentication: a gateway that is not ready closes it with 1013. */
export async function openChat(open: () => AgentSocket): Promise<AgentSocket> {
  for (const deadline = performance.now() + STALL_MS; ; await delay(PAUSE_MS)) {
    const socket = open()
    await socket.opened
    const isAsked = () => socket.messages.some(({ event }) => event === 'connect.challenge')
    await until(
      'the gateway asks for authentication',
      () => isAsked() || socket.raw.readyState === socket.raw.CLOSED,
    )
    if (isAsked()) return socket
    const { code, reason } = await socket.closed
    assert.ok(code === 1013 && performance.now() < deadline, `closed: ${code} ${reason}`)
  }
}

/** The response to a GET of an agent once agentd has responded in time; Berth waits two seconds for it. */
export const live = (api: Client, path: string): Promise<Reply> =>
  until('agentd responds in time', async () => {
    const reply = await api.get(path)
    return (reply.status !== 200 || reply.body.disk !== null) && reply
  })

/** The operation of a reply, once it has ended. */
export const ended = (api: Client, reply: Reply): Promise<Reply['body']> =>
  until(
    'the operation ends',
    async () => {
      const { data } = (await api.get(`/v0/operations/${reply.headers.get('operation-id')}`)).body
      return data.finished_at ? data : undefined
    },
    OPERATION_MS,
  )

/**
 * The final response to a POST, however long its operation takes: the request does not wait, and is sent again with the
 * same key, which finds the operation.
 */
export async function finalAnswer(api: Client, path: string, body?: object): Promise<Reply> {
  const key = { 'idempotency-key': randomUUID() }
  await ended(api, await api.post(path, body, { ...AT_ONCE, ...key }))
  return api.post(path, body, key)
}
