/** An agent's paths and environment inside an engine image, the same in Docker and in Kubernetes. */
import { AGENTD_PORT, type AgentdConfig, GATEWAY_PORT } from '../../agentd/protocol.ts'
import type { SandboxSpec } from './port.ts'

/** The user `node` of the image, and its group. */
export const UID = 1000
export const HOME = '/home/node'
const ENGINE_DIR = '/opt/openclaw'

/** Bytes of /tmp, which count towards the agent's memory. */
export const tmpBytesOf = ({ memoryBytes }: SandboxSpec['limits']): number =>
  Math.min(512 * 1024 * 1024, Math.floor(memoryBytes / 4))

/** @param proxy the URL of the egress proxy: the agent's network allows nothing else. */
export function environmentOf(
  spec: SandboxSpec,
  { proxy, hardLimit }: { proxy: string; hardLimit?: boolean },
): Record<string, string> {
  const agentd: AgentdConfig = {
    ...spec.agentd,
    host: '0.0.0.0',
    port: AGENTD_PORT,
    home: HOME,
    engineDir: ENGINE_DIR,
    gatewayPort: GATEWAY_PORT,
    ...(hardLimit && { hardLimit }),
  }
  // Only the agent's own loopback bypasses the proxy.
  const direct = 'localhost,127.0.0.1,::1'
  return {
    HOME,
    HTTP_PROXY: proxy,
    HTTPS_PROXY: proxy,
    NO_PROXY: direct,
    http_proxy: proxy,
    https_proxy: proxy,
    no_proxy: direct,
    // Otherwise Node ignores the proxy variables.
    NODE_USE_ENV_PROXY: '1',
    ...spec.env,
    AGENTD_CONFIG: JSON.stringify(agentd),
  }
}
