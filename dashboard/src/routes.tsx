import {
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
  redirect,
} from '@tanstack/react-router'
import { readShown } from './pages/agents/shown.ts'
import { Login } from './pages/login/Login.tsx'
import { Overview } from './pages/overview/Overview.tsx'
import { Shell } from './shell/Shell.tsx'

/** Every address of the dashboard. All but the first page is loaded when it is opened. */
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
  component: lazyRouteComponent(() => import('./pages/files/Files.tsx'), 'Files'),
})
const account = createRoute({
  getParentRoute: () => shell,
  path: '/dashboard/account',
  component: lazyRouteComponent(() => import('./pages/account/Account.tsx'), 'Account'),
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
    component: lazyRouteComponent(() => import('./pages/agent/AgentFiles.tsx'), 'AgentFiles'),
  }),
  createRoute({
    ...inAgent,
    path: 'snapshots',
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
    path: 'secrets',
    component: lazyRouteComponent(() => import('./pages/agent/Secrets.tsx'), 'Secrets'),
  }),
  createRoute({
    ...inAgent,
    path: 'skills',
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
    component: lazyRouteComponent(() => import('./pages/operate/Operations.tsx'), 'Operations'),
  }),
]

export const router = createRouter({
  routeTree: root.addChildren([
    createRoute({ getParentRoute: () => root, path: '/login', component: Login }),
    shell.addChildren([
      createRoute({ getParentRoute: () => shell, path: '/dashboard', component: Overview }),
      files,
      agents,
      newAgent,
      agent.addChildren(agentPages),
      operate.addChildren(operatePages),
      account,
    ]),
  ]),
  defaultPreload: 'intent',
})
declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router
  }
}
