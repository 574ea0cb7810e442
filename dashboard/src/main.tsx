import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { createRootRoute, createRoute, createRouter, RouterProvider } from '@tanstack/react-router'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { RequestError } from './api/client.ts'
import { Agents } from './pages/agents/Agents.tsx'
import { Files } from './pages/files/Files.tsx'
import { Login } from './pages/login/Login.tsx'
import { Overview } from './pages/overview/Overview.tsx'
import { Shell } from './shell/Shell.tsx'
import './styles.css'

const root = createRootRoute()
const shell = createRoute({ getParentRoute: () => root, id: 'shell', component: Shell })
const routeTree = root.addChildren([
  createRoute({ getParentRoute: () => root, path: '/login', component: Login }),
  shell.addChildren([
    createRoute({ getParentRoute: () => shell, path: '/dashboard', component: Overview }),
    createRoute({ getParentRoute: () => shell, path: '/dashboard/files', component: Files }),
    createRoute({ getParentRoute: () => shell, path: '/dashboard/agents', component: Agents }),
  ]),
])
const router = createRouter({ routeTree })
declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router
  }
}

const queries = new QueryClient({
  defaultOptions: {
    queries: {
      retry: (failures, error) => !(error instanceof RequestError && error.status < 500) && failures < 3,
    },
  },
})

const place = document.getElementById('root')
if (place)
  createRoot(place).render(
    <StrictMode>
      <QueryClientProvider client={queries}>
        <RouterProvider router={router} />
      </QueryClientProvider>
    </StrictMode>,
  )
