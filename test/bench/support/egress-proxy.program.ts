/**
 * An egress proxy in front of a TLS server. Its client `brokered` is an agent with a brokered secret for that server, its
 * client `plain` an agent without one. Sends its port to its parent process.
 */
import { Registry } from 'prom-client'
import { sha256 } from '../../../src/agent-proxy/credential.ts'
import { EgressProxy } from '../../../src/agent-proxy/egress.ts'
import { Policies } from '../../../src/agent-proxy/policy/policies.ts'
import type { EgressPolicy, EgressRequest } from '../../../src/agent-proxy/policy/protocol.ts'
import { Terminator } from '../../../src/agent-proxy/tls/terminator.ts'
import { createLogger } from '../../../src/log.ts'
import { AGENT_PROXY_KEY, HOST, ROOTS, SECRET } from './egress.ts'

const [upstream] = process.argv.slice(2)
const log = createLogger('bench', 'silent')
const plain: EgressPolicy = { agentId: 'xaaaaaaa', mode: 'open', allow: [], deny: [], secrets: [] }
const brokered = { ...plain, secrets: [SECRET] }
const control = {
  egress: async ({ clients }: EgressRequest) => ({
    policies: clients.map(({ credential }) => (credential === sha256('brokered') ? brokered : plain)),
  }),
}
const proxy = new EgressProxy({
  allowed: [],
  routes: [{ hosts: [{ host: HOST, port: 443 }], at: { host: '127.0.0.1', port: Number(upstream) } }],
  policies: new Policies({ control, log }),
  terminator: new Terminator({ agentProxyKey: AGENT_PROXY_KEY, log, roots: [ROOTS.certificatePem] }),
  log,
  registry: new Registry(),
})
const settings = { host: 'BERTH_EGRESS_HOST', port: 'BERTH_EGRESS_PORT' }
const binding = { host: '127.0.0.1', port: 0, settings }
process.send?.(await proxy.listen(binding, { network: '127.0.0.0/8', isOfOne: true }))
process.once('disconnect', () => process.exit())
