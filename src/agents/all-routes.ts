/** Every route of agents; each resource has its own folder. */

import type { Route } from '../http/route.ts'
import type { AgentServices } from './agent-route.ts'
import { channelRoutes } from './channels/channel-routes.ts'
import { clawhubRoutes } from './clawhub/clawhub-routes.ts'
import { agentConfigRoutes } from './config/config-routes.ts'
import { consoleRoutes } from './console/console-routes.ts'
import { conversationRoutes } from './conversations/conversation-routes.ts'
import { deviceRoutes } from './devices/device-routes.ts'
import { domainRoutes } from './domains/domain-routes.ts'
import { agentFileRoutes } from './files/agent-file-routes.ts'
import { gitRoutes, manifestRoutes } from './git/git-routes.ts'
import { issueRoutes } from './issues/issue-routes.ts'
import { lifecycleRoutes } from './lifecycle/agent-routes.ts'
import { runRoutes } from './lifecycle/run-routes.ts'
import { logRoutes } from './logs/log-routes.ts'
import { modelRoutes } from './models/model-routes.ts'
import { portRoutes } from './ports/port-routes.ts'
import { secretRoutes } from './secrets/secret-routes.ts'
import { agentSkillRoutes } from './skills/agent-skill-routes.ts'
import { skillRoutes } from './skills/skill-routes.ts'
import { snapshotRoutes } from './snapshots/snapshot-routes.ts'
import { taskRoutes } from './tasks/task-routes.ts'
import { templateRoutes } from './templates/template-routes.ts'
import { tokenRoutes } from './tokens/token-routes.ts'
import { usageRoutes } from './usage/usage-routes.ts'

export function agentRoutes(services: AgentServices): Route[] {
  return [
    // `/v0/agents/engines`, `/v0/agents/models` and `/v0/agents/usage` must come before `/v0/agents/:agentId`.
    ...runRoutes(services),
    ...modelRoutes(services),
    ...usageRoutes(services),
    ...lifecycleRoutes(services),
    ...secretRoutes(services),
    ...skillRoutes(services),
    ...agentSkillRoutes(services),
    ...clawhubRoutes(services),
    ...tokenRoutes(services),
    ...logRoutes(services),
    ...conversationRoutes(services),
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
    ...issueRoutes(),
  ]
}
