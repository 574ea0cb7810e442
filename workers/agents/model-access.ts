/** How an agent's next run reaches models and the egress proxy: URL and virtual key, credential and certificate. */
import { createHash, createHmac } from 'node:crypto'
import type { StartRequest } from '../../agentd/protocol.ts'
import { agentAuthority } from '../../src/agent-proxy/tls/authority.ts'
import { askAgentProxy, loadAgentProxy } from '../../src/agent-proxy/tunnel-client.ts'
import type { Agent } from '../../src/agents/agent.ts'
import { type Config, loadAgentProxyKey } from '../../src/config.ts'
import { isSpare } from '../../src/db/statements/pool.ts'
import { MODEL_HOST } from '../../src/lib/net/host-machine.ts'
import type { ModelAccess } from '../../src/openclaw/models.ts'
import type { Run } from '../../src/operations/handler.ts'
import type { AgentWorkerServices } from '../services.ts'

/**
 * Makes the key and the credential of the run that this operation starts, and lets them replace the previous ones:
 * those stop working. Both are derived from the operation, so a repeat makes the same, and nobody stores them in plain.
 * A new agent that was a spare keeps the spare's, which have never worked before.
 * @throws TunnelError, or another Error, if agents are processes and the agent proxy does not respond.
 */
export async function grantModelAccess(
  { prisma, config, runtime }: AgentWorkerServices,
  { operation, input }: Run,
  agent: Agent,
): Promise<{ access: ModelAccess } & Pick<StartRequest, 'proxyCredential' | 'caCertificate'>> {
  const { id, agentId, epoch } = agent
  const secret = loadAgentProxyKey(config)
  // The gateway of a former spare has its keys already.
  const seed = ('spare' in input && input.spare) || `${id} ${operation.id}`
  const derive = (purpose: string) =>
    createHmac('sha256', secret).update(`${purpose} ${seed}`).digest('base64url')
  const isProcess = runtime.driver === 'process'
  const key = `berth-${derive('model key')}`
  // Processes share the machine's loopback, and have no proxy.
  const proxyCredential = isProcess ? undefined : derive('proxy credential')
  const caCertificate = isProcess ? undefined : agentAuthority(secret, agentId).certificatePem
  const url = isProcess ? await localUrl(config) : `http://${MODEL_HOST}`
  await prisma.agent.updateMany({
    where: { id, epoch },
    // The keys of a spare work only for its owner.
    data: isSpare(agent)
      ? { modelKeyHash: null, proxyKeyHash: null }
      : { modelKeyHash: sha256(key), proxyKeyHash: proxyCredential ? sha256(proxyCredential) : null },
  })
  return { access: { url, key }, proxyCredential, caCertificate }
}

async function localUrl(config: Config): Promise<string> {
  const { BERTH_EGRESS_HOST: host } = config
  const { egressPort } = await askAgentProxy(loadAgentProxy(config))
  return `http://${host.includes(':') ? `[${host}]` : host}:${egressPort}`
}

const sha256 = (text: string) => new Uint8Array(createHash('sha256').update(text).digest())
