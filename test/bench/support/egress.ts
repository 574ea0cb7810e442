/** Shared parts of the egress proxy's benchmark. */
import { agentAuthority } from '../../../src/agent-proxy/tls/authority.ts'

export const HOST = 'api.example.com'
export const AGENT_PROXY_KEY = 'the key of this benchmark'
export const ROOTS = agentAuthority('roots', 'bench')
export const SECRET = {
  placeholder: 'sk-test-Ph9PlaceholderPh9',
  value: 'sk-test-4fRealSecretValue',
  hosts: [HOST],
  via: { as: 'bearer' as const },
}
