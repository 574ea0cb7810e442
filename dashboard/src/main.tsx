import { QueryCache, QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { RequestError } from './api/client.ts'
import { router } from './routes.tsx'
import { applyTheme } from './shell/theme.ts'
import './styles.css'

applyTheme()

const queries: QueryClient = new QueryClient({
  queryCache: new QueryCache({
    onError(error, { queryKey }) {
      // The session may have ended: the shell asks who is signed in.
      if (error instanceof RequestError && error.status === 401 && queryKey[0] !== 'me')
        void queries.invalidateQueries({ queryKey: ['me'] })
    },
  }),
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
