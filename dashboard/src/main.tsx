import { MutationCache, QueryCache, QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { RequestError } from './api/client.ts'
import { guardDrops } from './parts/drops.ts'
import { router } from './routes.tsx'
import { applyTheme } from './shell/theme.ts'
import './styles.css'

applyTheme()
guardDrops()

/** Statuses if the session has ended or moved to another workspace: the shell then reads user and workspace again. */
const OTHER_SESSION = [401, 403]
const askAgain = (error: Error) => {
  const isOfSession = error instanceof RequestError && OTHER_SESSION.includes(error.status)
  // A failed sign-in does not end a session.
  if (isOfSession && queries.getQueryData(['me'])) void queries.invalidateQueries({ queryKey: ['me'] })
}
const queries: QueryClient = new QueryClient({
  queryCache: new QueryCache({ onError: (error, { queryKey }) => queryKey[0] !== 'me' && askAgain(error) }),
  mutationCache: new MutationCache({ onError: askAgain }),
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
