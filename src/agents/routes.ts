/** Every route of agents; each resource has a folder of its own. */
import type { Route } from '../http/route.ts'
import { channelRoutes } from './channels/routes.ts'
import { clawhubRoutes } from './clawhub/routes.ts'
import { agentConfigRoutes } from './config/routes.ts'
import { consoleRoutes } from './console/routes.ts'
import { deviceRoutes } from './devices/routes.ts'
import { domainRoutes } from './domains/routes.ts'
import { agentFileRoutes } from './files/routes.ts'
import { gitRoutes } from './git/routes.ts'
import { issueRoutes } from './issues/routes.ts'
import { lifecycleRoutes } from './lifecycle/routes.ts'
import { runRoutes } from './lifecycle/run-routes.ts'
import { logRoutes } from './logs/routes.ts'
import { manifestRoutes } from './manifest/routes.ts'
import { portRoutes } from './ports/routes.ts'
import { secretRoutes } from './secrets/routes.ts'
import type { AgentServices } from './services.ts'
import { agentSkillRoutes } from './skills/agent-routes.ts'
import { skillRoutes } from './skills/routes.ts'
import { snapshotRoutes } from './snapshots/routes.ts'
import { taskRoutes } from './tasks/routes.ts'
import { templateRoutes } from './templates/routes.ts'
import { tokenRoutes } from './tokens/routes.ts'

export function agentRoutes(services: AgentServices): Route[] {
  return [
    // `/v0/agents/engines` before `/v0/agents/:agentId`.
    ...runRoutes(services),
    ...lifecycleRoutes(services),
    ...secretRoutes(services),
    ...skillRoutes(services),
    ...agentSkillRoutes(services),
    ...clawhubRoutes(services),
    ...tokenRoutes(services),
    ...logRoutes(services),
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
