import {
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
  redirect,
} from '@tanstack/react-router'
import { readCompared } from './pages/agent/snapshots/compared.ts'
import { readShown } from './pages/agents/shown.ts'
import type { FileSearch } from './pages/files/Files.tsx'
import { Login } from './pages/login/Login.tsx'
import { readAuditSearch } from './pages/operate/audit/search.ts'
import { readOperationsSearch } from './pages/operate/operations/search.ts'
import { Overview } from './pages/overview/Overview.tsx'
import { readSpendingSearch } from './pages/spending/range.ts'
import { Broken, Lost } from './shell/Lost.tsx'
import { Shell } from './shell/Shell.tsx'

/** Every route of the dashboard. Each page except the first is loaded when it is opened. */
const root = createRootRoute()
const shell = createRoute({ getParentRoute: () => root, id: 'shell', component: Shell })
const agents = createRoute({
  getParentRoute: () => shell,
  path: '/dashboard/agents',
  validateSearch: readShown,
  component: lazyRouteComponent(() => import('./pages/agents/Agents.tsx'), 'Agents'),
})
const newAgent = createRoute({
  getParentRoute: () => shell,
  path: '/dashboard/agents/new',
  validateSearch: ({ made }: Record<string, unknown>): { made?: string } =>
    typeof made === 'string' ? { made } : {},
  component: lazyRouteComponent(() => import('./pages/agents/NewAgent.tsx'), 'NewAgent'),
})
const files = createRoute({
  getParentRoute: () => shell,
  path: '/dashboard/files',
  component: lazyRouteComponent(() => import('./pages/files/FilesArea.tsx'), 'FilesArea'),
})
const inFiles = { getParentRoute: () => files }
const text = (value: unknown) => (typeof value === 'string' && value ? value : undefined)
const filePages = [
  createRoute({
    ...inFiles,
    path: '/',
    validateSearch: (search: Record<string, unknown>): FileSearch => ({
      ...(search.network === 'private' && { network: 'private' }),
      ...(text(search.name) && { name: text(search.name) }),
      ...(text(search.group) && { group: text(search.group) }),
      ...(text(search.type) && { type: text(search.type) }),
      ...(search.order === 'ASC' && { order: 'ASC' }),
    }),
    component: lazyRouteComponent(() => import('./pages/files/Files.tsx'), 'Files'),
  }),
  createRoute({
    ...inFiles,
    path: 'pins',
    component: lazyRouteComponent(() => import('./pages/files/Pins.tsx'), 'Pins'),
  }),
  createRoute({
    ...inFiles,
    path: 'groups',
    validateSearch: ({ network }: Record<string, unknown>): { network?: 'private' } =>
      network === 'private' ? { network } : {},
    component: lazyRouteComponent(() => import('./pages/files/Groups.tsx'), 'Groups'),
  }),
  createRoute({
    ...inFiles,
    path: 'gateways',
    component: lazyRouteComponent(() => import('./pages/files/gateways/Gateways.tsx'), 'Gateways'),
  }),
]
const file = createRoute({
  getParentRoute: () => shell,
  path: '/dashboard/files/$network/$fileId',
  component: lazyRouteComponent(() => import('./pages/files/file/FilePage.tsx'), 'FilePage'),
})
const gateway = createRoute({
  getParentRoute: () => shell,
  path: '/dashboard/files/gateways/$gatewayId',
  component: lazyRouteComponent(() => import('./pages/files/gateways/GatewayPage.tsx'), 'GatewayPage'),
})
const spending = createRoute({
  getParentRoute: () => shell,
  path: '/dashboard/spending',
  validateSearch: readSpendingSearch,
  component: lazyRouteComponent(() => import('./pages/spending/Spending.tsx'), 'Spending'),
})
const account = createRoute({
  getParentRoute: () => shell,
  path: '/dashboard/account',
  component: lazyRouteComponent(() => import('./pages/account/Account.tsx'), 'Account'),
})
const program = createRoute({
  getParentRoute: () => shell,
  path: '/dashboard/program',
  component: lazyRouteComponent(() => import('./pages/authorize/Program.tsx'), 'Program'),
})
const authorize = createRoute({
  getParentRoute: () => shell,
  path: '/dashboard/authorize',
  component: lazyRouteComponent(() => import('./pages/authorize/Authorize.tsx'), 'Authorize'),
})
const agent = createRoute({
  getParentRoute: () => shell,
  path: '/dashboard/agents/$agentId',
  component: lazyRouteComponent(() => import('./pages/agent/Agent.tsx'), 'Agent'),
})
const inAgent = { getParentRoute: () => agent }
const agentPages = [
  createRoute({
    ...inAgent,
    path: '/',
    validateSearch: (search): { conversation?: string } =>
      typeof search.conversation === 'string' ? { conversation: search.conversation } : {},
    component: lazyRouteComponent(() => import('./pages/agent/Chat.tsx'), 'Chat'),
  }),
  createRoute({
    ...inAgent,
    path: 'console',
    component: lazyRouteComponent(() => import('./pages/agent/Console.tsx'), 'Console'),
  }),
  createRoute({
    ...inAgent,
    path: 'files',
    validateSearch: ({ file }: Record<string, unknown>): { file?: string } =>
      text(file) ? { file: String(file) } : {},
    component: lazyRouteComponent(() => import('./pages/agent/AgentFiles.tsx'), 'AgentFiles'),
  }),
  createRoute({
    ...inAgent,
    path: 'snapshots',
    validateSearch: readCompared,
    component: lazyRouteComponent(() => import('./pages/agent/Snapshots.tsx'), 'Snapshots'),
  }),
  createRoute({
    ...inAgent,
    path: 'logs',
    component: lazyRouteComponent(() => import('./pages/agent/Logs.tsx'), 'Logs'),
  }),
  createRoute({
    ...inAgent,
    path: 'usage',
    component: lazyRouteComponent(() => import('./pages/agent/Usage.tsx'), 'Usage'),
  }),
  createRoute({
    ...inAgent,
    path: 'tasks',
    component: lazyRouteComponent(() => import('./pages/agent/Tasks.tsx'), 'Tasks'),
  }),
  createRoute({
    ...inAgent,
    path: 'models',
    validateSearch: readSpendingSearch,
    component: lazyRouteComponent(() => import('./pages/agent/Models.tsx'), 'Models'),
  }),
  createRoute({
    ...inAgent,
    path: 'egress',
    component: lazyRouteComponent(() => import('./pages/agent/Egress.tsx'), 'Egress'),
  }),
  createRoute({
    ...inAgent,
    path: 'secrets',
    component: lazyRouteComponent(() => import('./pages/agent/Secrets.tsx'), 'Secrets'),
  }),
  createRoute({
    ...inAgent,
    path: 'skills',
    validateSearch: ({ view }: Record<string, unknown>): { view?: 'library' | 'hub' } =>
      view === 'library' || view === 'hub' ? { view } : {},
    component: lazyRouteComponent(() => import('./pages/agent/Skills.tsx'), 'Skills'),
  }),
  createRoute({
    ...inAgent,
    path: 'channels',
    component: lazyRouteComponent(() => import('./pages/agent/Channels.tsx'), 'Channels'),
  }),
  createRoute({
    ...inAgent,
    path: 'devices',
    component: lazyRouteComponent(() => import('./pages/agent/Devices.tsx'), 'Devices'),
  }),
  createRoute({
    ...inAgent,
    path: 'domains',
    component: lazyRouteComponent(() => import('./pages/agent/Domains.tsx'), 'Domains'),
  }),
  createRoute({
    ...inAgent,
    path: 'config',
    component: lazyRouteComponent(() => import('./pages/agent/Config.tsx'), 'Config'),
  }),
  createRoute({
    ...inAgent,
    path: 'settings',
    component: lazyRouteComponent(() => import('./pages/agent/Settings.tsx'), 'Settings'),
  }),
]

const operate = createRoute({
  getParentRoute: () => shell,
  path: '/dashboard/operate',
  component: lazyRouteComponent(() => import('./pages/operate/Operate.tsx'), 'Operate'),
})
const inOperate = { getParentRoute: () => operate }
const operatePages = [
  createRoute({
    ...inOperate,
    path: '/',
    beforeLoad: () => {
      throw redirect({ to: '/dashboard/operate/operations' })
    },
  }),
  createRoute({
    ...inOperate,
    path: 'operations',
    validateSearch: readOperationsSearch,
    component: lazyRouteComponent(() => import('./pages/operate/operations/Operations.tsx'), 'Operations'),
  }),
  createRoute({
    ...inOperate,
    path: 'operations/$operationId',
    component: lazyRouteComponent(() => import('./pages/operate/operations/Operation.tsx'), 'Operation'),
  }),
  createRoute({
    ...inOperate,
    path: 'keys',
    validateSearch: (asked: Record<string, unknown>): { do?: 'new' } =>
      asked.do === 'new' ? { do: 'new' } : {},
    component: lazyRouteComponent(() => import('./pages/operate/keys/Keys.tsx'), 'Keys'),
  }),
  createRoute({
    ...inOperate,
    path: 'connect',
    component: lazyRouteComponent(() => import('./pages/operate/connect/Connect.tsx'), 'Connect'),
  }),
  createRoute({
    ...inOperate,
    path: 'egress',
    component: lazyRouteComponent(() => import('./pages/operate/WorkspaceEgress.tsx'), 'WorkspaceEgress'),
  }),
  createRoute({
    ...inOperate,
    path: 'members',
    component: lazyRouteComponent(() => import('./pages/operate/members/Members.tsx'), 'Members'),
  }),
  createRoute({
    ...inOperate,
    path: 'webhooks',
    component: lazyRouteComponent(() => import('./pages/operate/webhooks/Webhooks.tsx'), 'Webhooks'),
  }),
  createRoute({
    ...inOperate,
    path: 'webhooks/$webhookId',
    component: lazyRouteComponent(() => import('./pages/operate/webhooks/Webhook.tsx'), 'Webhook'),
  }),
  createRoute({
    ...inOperate,
    path: 'audit',
    validateSearch: readAuditSearch,
    component: lazyRouteComponent(() => import('./pages/operate/audit/Audit.tsx'), 'Audit'),
  }),
  createRoute({
    ...inOperate,
    path: 'health',
    component: lazyRouteComponent(() => import('./pages/operate/instance/Health.tsx'), 'Health'),
  }),
  createRoute({
    ...inOperate,
    path: 'workers',
    component: lazyRouteComponent(() => import('./pages/operate/instance/Workers.tsx'), 'Workers'),
  }),
  createRoute({
    ...inOperate,
    path: 'workspaces',
    component: lazyRouteComponent(() => import('./pages/operate/instance/Workspaces.tsx'), 'Workspaces'),
  }),
  createRoute({
    ...inOperate,
    path: 'plans',
    component: lazyRouteComponent(() => import('./pages/operate/instance/Plans.tsx'), 'Plans'),
  }),
]

export const router = createRouter({
  routeTree: root.addChildren([
    createRoute({ getParentRoute: () => root, path: '/login', component: Login }),
    shell.addChildren([
      createRoute({ getParentRoute: () => shell, path: '/dashboard', component: Overview }),
      files.addChildren(filePages),
      file,
      gateway,
      agents,
      newAgent,
      agent.addChildren(agentPages),
      spending,
      operate.addChildren(operatePages),
      account,
      authorize,
      program,
    ]),
  ]),
  defaultPreload: 'intent',
  defaultErrorComponent: Broken,
  defaultNotFoundComponent: Lost,
  scrollRestoration: true,
})
declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router
  }
}
