import { z } from 'zod'
import { messages, notFound } from '../../errors.ts'
import { like, uuid, withExample } from '../../http/fields.ts'
import type { Route } from '../../http/route.ts'
import { text } from '../../http/shapes.ts'
import type { Agent } from '../agent.ts'
import { type AgentServices, agentRoutesOf } from '../agent-route.ts'
import { callEngine, EngineRefusal, engineFailed } from '../engine-call.ts'

const requestPath = z.object({ agentId: z.string(), requestId: text(200) })

const named = {
  deviceId: like('334e41ae88807321775fd2e6309ce4acdc1666544cac1339c57b7994a3262594'),
  publicKey: z.string().optional(),
  displayName: z.string().optional(),
  platform: z.string().optional(),
  clientId: z.string().optional(),
  clientMode: z.string().optional(),
  role: z.string().optional(),
  roles: z.array(z.string()).optional(),
  scopes: z.array(z.string()).optional(),
  remoteIp: z.string().optional(),
}

/** The engine's records; additional fields are passed on. */
const devices = z.object({
  pending: z.array(z.looseObject({ requestId: uuid, ...named, ts: z.number().optional() })),
  paired: z.array(z.looseObject(named)),
})

const approval = z.object({ success: like(true), requestId: uuid, message: like('Approved') })

const approvals = z.object({
  approved: withExample(z.array(z.string()), ['683619e4-3515-4229-9c58-05e77bc17d85']),
  failed: z.array(z.object({ requestId: uuid, success: like(true), error: z.string() })),
  message: like('Approved'),
})

const agentRoute = agentRoutesOf('Devices')
const DEVICES = '/v0/agents/:agentId/devices'

/** Devices that are paired with an agent's gateway, or request pairing (contract 4.3). */
export function deviceRoutes({ agentd }: AgentServices): Route[] {
  const ask = <T>(agent: Agent, method: string, shape: z.ZodType<T>, params = {}): Promise<T> =>
    callEngine(agentd, agent, { method, params, shape, failure: messages.cliError }).catch((error) => {
      throw error instanceof EngineRefusal ? toAnswer(error) : error
    })
  const list = (agent: Agent) => ask(agent, 'device.pair.list', devices)
  const approve = (agent: Agent, requestId: string) =>
    ask(agent, 'device.pair.approve', z.unknown(), { requestId })

  return [
    agentRoute({
      method: 'get',
      path: DEVICES,
      id: 'listDevices',
      summary: 'List devices',
      description:
        'A client that presents its own key is a device, and has to be approved. A client that only has ' +
        'the gateway token is not a device.',
      scope: 'org:agents:read',
      callers: ['gateway', 'platform'],
      success: { description: 'The devices waiting for approval, and the paired ones.', body: devices },
      handle: async ({ agent }) => ({ body: await list(agent) }),
    }),
    agentRoute({
      method: 'post',
      path: `${DEVICES}/approve-all`,
      id: 'approveAllDevices',
      summary: 'Approve all waiting devices',
      scope: 'org:agents:write',
      callers: ['gateway', 'platform'],
      success: { description: 'The approved devices, and the others.', body: approvals },
      async handle({ agent, signal }) {
        const approved: string[] = []
        const failed: z.output<typeof approvals>['failed'] = []
        const { pending } = await list(agent)
        for (const { requestId } of pending) {
          signal.throwIfAborted()
          await approve(agent, requestId).then(
            () => approved.push(requestId),
            ({ message }: Error) => failed.push({ requestId, success: false, error: message }),
          )
        }
        const message = `Approved ${approved.length} of ${pending.length}`
        return { body: { approved, failed, message } }
      },
    }),
    agentRoute({
      method: 'post',
      path: `${DEVICES}/:requestId/approve`,
      id: 'approveDevice',
      summary: 'Approve a device',
      scope: 'org:agents:write',
      callers: ['gateway', 'platform'],
      params: requestPath,
      success: { description: 'It is paired.', body: approval },
      async handle({ agent, params: { requestId } }) {
        await approve(agent, requestId)
        return { body: { success: true, requestId, message: `Approved ${requestId}` } }
      },
    }),
  ]
}

/** The engine has no separate code for a request that does not exist, or expired after five minutes. */
const toAnswer = (refusal: EngineRefusal) =>
  /unknown requestId/i.test(refusal.message)
    ? notFound('There is no such pairing request')
    : engineFailed(messages.cliError, refusal)
