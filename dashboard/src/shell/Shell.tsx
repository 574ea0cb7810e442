import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link, Outlet } from '@tanstack/react-router'
import { useEffect } from 'react'
import { api, RequestError, unwrap } from '../api/client.ts'
import { followChanges } from '../api/live.ts'
import { Login } from '../pages/login/Login.tsx'
import { Button, Problem } from '../parts/ui.tsx'
import { texts } from '../texts.ts'

const PAGES = [
  ['/dashboard', texts.nav.overview],
  ['/dashboard/files', texts.nav.files],
  ['/dashboard/agents', texts.nav.agents],
  ['/dashboard/operate', texts.nav.operate],
] as const

/** What every page stands in; who is not signed in sees how to. */
export function Shell() {
  const queries = useQueryClient()
  const me = useQuery({ queryKey: ['me'], queryFn: () => unwrap(api.GET('/v0/me')), retry: false })
  const signOut = useMutation({
    mutationFn: () => unwrap(api.POST('/v0/logout')),
    onSuccess: () => queries.resetQueries(),
  })
  const isIn = me.data !== undefined
  useEffect(() => (isIn ? followChanges(queries) : undefined), [isIn, queries])
  if (me.error instanceof RequestError && me.error.status === 401) return <Login />
  if (!me.data) return <main className="p-8">{me.error ? <Problem error={me.error} /> : texts.loading}</main>
  const { user, workspace } = me.data.data
  return (
    <div className="min-h-dvh md:grid md:grid-cols-[14rem_1fr]">
      <a href="#content" className="sr-only focus:not-sr-only focus:absolute focus:p-3">
        {texts.skip}
      </a>
      <header className="flex flex-wrap items-center gap-x-4 gap-y-2 border-line border-b bg-card px-4 py-3 md:sticky md:top-0 md:h-dvh md:min-w-0 md:flex-col md:flex-nowrap md:items-stretch md:border-r md:border-b-0 md:p-5">
        <div className="flex items-center gap-2.5 font-semibold text-lg md:mb-6">
          <img src="/dashboard/icon.svg" alt="" className="size-8" />
          {texts.name}
        </div>
        <nav className="order-last flex w-full gap-1 md:order-none md:flex-col">
          {PAGES.map(([to, label]) => (
            <Link
              key={to}
              to={to}
              activeOptions={{ exact: to === '/dashboard' }}
              className="flex-1 rounded-lg px-3 py-2 text-center font-medium text-sm text-soft hover:text-ink aria-[current=page]:bg-tint aria-[current=page]:text-accent md:flex-none md:text-left"
            >
              {label}
            </Link>
          ))}
        </nav>
        <div className="ml-auto flex items-center gap-3 text-sm md:mt-auto md:ml-0 md:flex-col md:items-stretch">
          <Link to="/dashboard/account" className="hidden min-w-0 hover:text-accent md:block">
            <span className="block truncate font-medium">{workspace.name}</span>
            <span className="block truncate text-soft">{user.name}</span>
          </Link>
          <Button onClick={() => signOut.mutate()}>{texts.signOut}</Button>
        </div>
      </header>
      <main id="content" className="mx-auto w-full min-w-0 max-w-6xl p-4 md:p-8">
        <Outlet />
      </main>
    </div>
  )
}
