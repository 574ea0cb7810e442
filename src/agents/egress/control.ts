/** Answers agent proxies about egress; see `src/agent-proxy/policy/protocol.ts`. */
import type { RequestHandler } from 'express'
import { z } from 'zod'
import { AGENTD_PORT } from '../../../agentd/protocol.ts'
import { EGRESS_CONTROL, type EgressAnswer } from '../../agent-proxy/policy/protocol.ts'
import type { Core } from '../../core.ts'
import { addEgressCounts, findEgressPolicies } from '../../db/statements/egress.ts'
import { proxyControl } from '../../http/proxy-control.ts'
import { storableText } from '../../lib/read.ts'
import { BrokeredValues } from './brokered-values.ts'
import { readRules } from './policies.ts'

const count = z.number().int().min(0).max(Number.MAX_SAFE_INTEGER)
const request = z.object({
  clients: z
    .array(z.object({ credential: z.string().regex(/^([0-9a-f]{64})?$/), address: z.string().max(64) }))
    .max(20_000),
  counts: z
    .array(
      z.object({
        agentId: z.string().max(20),
        host: z.string().max(300),
        requests: count,
        denied: count,
        bytesSent: count,
        bytesReceived: count,
      }),
    )
    .max(10_000),
})

/** @param key AGENT_PROXY_KEY. */
export function egressControl(
  services: Pick<Core, 'pool' | 'encryption' | 'log'>,
  key: string,
): RequestHandler {
  const { pool } = services
  const values = new BrokeredValues(services)
  const { router, post } = proxyControl(key)
  post(EGRESS_CONTROL, request, async ({ clients, counts }): Promise<EgressAnswer> => {
    const hosts = counts.map((one) => ({ ...one, host: storableText(one.host) }))
    if (hosts.length > 0) await addEgressCounts.run(pool, JSON.stringify(hosts))
    const { rows } = await findEgressPolicies.run(
      pool,
      clients.map(({ credential }) => credential),
      clients.map(({ address }) => `${address.includes(':') ? `[${address}]` : address}:${AGENTD_PORT}`),
    )
    const found = Map.groupBy(rows, ({ nth }) => nth)
    // Without a credential, the address may be another agent's by now.
    const authorized = rows.filter(({ nth }) => clients[nth - 1]?.credential)
    const secrets = await values.find(authorized.map(({ agentId }) => agentId))
    return {
      policies: clients.map(({ credential }, i) => {
        const [one, ...more] = found.get(i + 1) ?? []
        // Two agents with one address: the row of the one that had it before does not know yet.
        if (!one || more.length > 0) return null
        const { nth: _nth, ...policy } = one
        const [allow, deny] = [readRules(policy.allow), readRules(policy.deny)]
        return { ...policy, allow, deny, secrets: (credential && secrets.get(policy.agentId)) || [] }
      }),
    }
  })
  return router
}
