import type { RequestHandler } from 'express'
import { loadAgentProxy } from '../agent-proxy/tunnel-client.ts'
import { loadAgentProxyKey } from '../config.ts'
import type { Core } from '../core.ts'
import { OpenCalls } from '../http/open-calls.ts'
import type { Route } from '../http/route.ts'
import { a2aRoutes } from './a2a/a2a-routes.ts'
import { AgentAccess } from './access.ts'
import type { AgentServices } from './agent-route.ts'
import { AgentdClient } from './agentd-client.ts'
import { channelRoutes } from './channels/channel-routes.ts'
import { clawhubRoutes } from './clawhub/clawhub-routes.ts'
import { agentConfigRoutes } from './config/config-routes.ts'
import { AgentConnections, readValidFingerprints } from './connections.ts'
import { consoleRoutes } from './console/console-routes.ts'
import { conversationRoutes } from './conversations/conversation-routes.ts'
import { deviceRoutes } from './devices/device-routes.ts'
import { domainRoutes } from './domains/domain-routes.ts'
import { egressControl } from './egress/control.ts'
import { egressRoutes } from './egress/egress-routes.ts'
import { agentFileRoutes } from './files/agent-file-routes.ts'
import { forkRoutes } from './forks/fork-routes.ts'
import { gitRoutes, manifestRoutes } from './git/git-routes.ts'
import { issueRoutes } from './issues/issue-routes.ts'
import { lifecycleRoutes } from './lifecycle/agent-routes.ts'
import { runRoutes } from './lifecycle/run-routes.ts'
import { logRoutes } from './logs/log-routes.ts'
import { agentMcpRoutes } from './mcp/mcp-routes.ts'
import { modelRoutes } from './models/model-routes.ts'
import { portRoutes } from './ports/port-routes.ts'
import { llmKeyRoutes } from './secrets/llm-key-routes.ts'
import { secretRoutes } from './secrets/secret-routes.ts'
import { agentSkillRoutes } from './skills/agent-skill-routes.ts'
import { skillRoutes } from './skills/skill-routes.ts'
import { snapshotRoutes } from './snapshots/snapshot-routes.ts'
import { taskRoutes } from './tasks/task-routes.ts'
import { templateRoutes } from './templates/template-routes.ts'
import { tokenRoutes } from './tokens/token-routes.ts'
import { usageRoutes } from './usage/usage-routes.ts'

export interface Agents {
  services: AgentServices
  calls: OpenCalls
  routes: Route[]
  /** Answers agent proxies. */
  control: RequestHandler
}

/** Agents, the tunnels to them, and the calls that end when their credential does. */
export function openAgents(core: Core): Agents {
  const { config, pool, signingKeys, notifications, parts, registry, log } = core
  const agentd = new AgentdClient(loadAgentProxy(config))
  parts.add('tunnels to agents', () => agentd.close())
  const calls = new OpenCalls({
    readValidFingerprints: (grounds) => readValidFingerprints(pool, grounds),
    notifications,
    log,
  })
  parts.add('checks of what is open', () => calls.close())
  const services: AgentServices = {
    ...core,
    access: new AgentAccess({ pool, signingKeys, platformScope: config.BERTH_PLATFORM_TOKEN_SCOPE }),
    agentd,
    connections: new AgentConnections({ calls, registry }),
  }
  const routes = [
    // `/v0/agents/engines`, `/v0/agents/models` and `/v0/agents/usage` must come before `/v0/agents/:agentId`.
    ...runRoutes(services),
    ...modelRoutes(services),
    ...usageRoutes(services),
    ...lifecycleRoutes(services),
    ...forkRoutes(services),
    ...secretRoutes(services),
    ...skillRoutes(services),
    ...agentSkillRoutes(services),
    ...clawhubRoutes(services),
    ...tokenRoutes(services),
    ...logRoutes(services),
    ...conversationRoutes(services),
    ...a2aRoutes(services),
    ...agentMcpRoutes(services),
    ...consoleRoutes(services),
    ...agentFileRoutes(services),
    ...gitRoutes(services),
    ...manifestRoutes(),
    ...agentConfigRoutes(services),
    ...channelRoutes(services),
    ...deviceRoutes(services),
    ...taskRoutes(services),
    ...templateRoutes(services),
    ...snapshotRoutes(services),
    ...portRoutes(services),
    ...domainRoutes(services),
    ...egressRoutes(services),
    ...issueRoutes(),
    ...llmKeyRoutes(services),
  ]
  const control = egressControl(services, loadAgentProxyKey(config))
  return { services, calls, routes, control }
}
