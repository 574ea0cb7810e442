import { useMutation, useQueryClient } from '@tanstack/react-query'
import { Link, Outlet } from '@tanstack/react-router'
import { lazy, Suspense, useCallback, useEffect, useRef, useState } from 'react'
import { api, RequestError, showWorkspace, unwrap } from '../api/client.ts'
import { forgetChanges } from '../api/event-store.ts'
import { followChanges } from '../api/live.ts'
import { useMe } from '../api/me.ts'
import { rememberPage } from '../pages/login/come-back.ts'
import { Login } from '../pages/login/Login.tsx'
import { Icon, IconButton } from '../parts/icon.tsx'
import { ForMembers } from '../parts/rights.tsx'
import { Problem } from '../parts/ui.tsx'
import { texts } from '../texts.ts'
import { Help } from './Help.tsx'
import { useKeys } from './keys.ts'
import { LinkNotice } from './LinkNotice.tsx'
import { ThemeSwitch } from './ThemeSwitch.tsx'
import { Uploads } from './Uploads.tsx'
import { WorkspaceChoice } from './WorkspaceChoice.tsx'

const PAGES = [
  ['/dashboard', texts.nav.overview, 'overview'],
  ['/dashboard/files', texts.nav.files, 'files'],
  ['/dashboard/agents', texts.nav.agents, 'agents'],
  ['/dashboard/spending', texts.nav.spending, 'spending'],
  ['/dashboard/operate', texts.nav.operate, 'operate'],
] as const

const Palette = lazy(async () => ({ default: (await import('./Palette.tsx')).Palette }))

/** The frame around every page. Without a session it shows the sign-in page. */
export function Shell() {
  const queries = useQueryClient()
  const me = useMe()
  const isOut = me.error instanceof RequestError && me.error.status === 401
  const isIn = me.data !== undefined && !isOut
  useEffect(() => {
    if (!isIn) return
    const stop = followChanges(queries)
    return () => {
      stop()
      forgetChanges()
    }
  }, [isIn, queries])
  const workspaceId = me.data?.data.workspace.id
  const first = useRef<string>(undefined)
  useEffect(() => {
    if (workspaceId && !isOut && first.current && workspaceId !== first.current) {
      // Another tab has switched the workspace: nothing shown here belongs to the new one.
      location.assign('/dashboard')
      return
    }
    first.current = isOut ? undefined : workspaceId
    showWorkspace(first.current)
  }, [workspaceId, isOut])
  useEffect(() => {
    if (isOut) rememberPage()
  }, [isOut])
  if (isOut) return <Login />
  if (!me.data)
    return (
      <main className="p-8">
        <h1 className="sr-only">{texts.name}</h1>
        {me.error ? <Problem error={me.error} /> : texts.loading}
      </main>
    )
  return (
    <div className="min-h-dvh pb-16 md:grid md:grid-cols-[14rem_minmax(0,1fr)] md:pb-0">
      <a
        href="#content"
        className="sr-only rounded-lg bg-card focus:not-sr-only focus:absolute focus:z-40 focus:m-2 focus:p-3"
      >
        {texts.skip}
      </a>
      <ForMembers>
        <Frame {...me.data.data} />
        <main id="content" tabIndex={-1} className="mx-auto w-full min-w-0 max-w-7xl p-4 outline-none md:p-8">
          <Outlet />
        </main>
      </ForMembers>
      <LinkNotice />
    </div>
  )
}

/** Navigation: a column on the left on wide screens; on a phone a bar at the top, and the pages at the bottom. */
function Frame({
  user,
  workspace,
  role,
}: {
  user: { name: string }
  workspace: { name: string }
  role: string
}) {
  const queries = useQueryClient()
  const [open, setOpen] = useState<'palette' | 'help'>()
  const onPalette = useCallback(() => setOpen('palette'), [])
  const onHelp = useCallback(() => setOpen('help'), [])
  const close = () => setOpen(undefined)
  useKeys({ onPalette, onHelp })
  const signOut = useMutation({
    mutationFn: () => unwrap(api.POST('/v0/logout')),
    onSuccess: () => queries.resetQueries(),
  })
  return (
    <>
      <header className="sticky top-0 z-20 flex flex-wrap items-center gap-3 border-line border-b bg-card px-4 py-2.5 md:h-dvh md:min-w-0 md:flex-col md:flex-nowrap md:items-stretch md:border-r md:border-b-0 md:p-4">
        <Link to="/dashboard" className="flex items-center gap-2.5 font-semibold text-lg md:mb-2 md:px-2">
          <img src="/dashboard/icon.svg" alt="" className="size-7" />
          <span className="max-md:sr-only">{texts.name}</span>
        </Link>
        <button
          type="button"
          onClick={onPalette}
          title={texts.shell.palette}
          className="ml-auto flex items-center gap-2 rounded-lg border border-line px-2.5 py-1.5 text-soft text-sm hover:border-accent hover:text-ink md:mb-3 md:ml-0"
        >
          <Icon name="search" className="size-4" />
          <span className="max-md:sr-only">{texts.shell.search}</span>
          <kbd className="ml-auto hidden rounded border border-line px-1.5 font-mono text-xs md:inline">
            {texts.shell.paletteKeys}
          </kbd>
        </button>
        <nav
          aria-label={texts.shell.pages}
          className="fixed inset-x-0 bottom-0 z-20 flex border-line border-t bg-card md:static md:flex-col md:gap-1 md:border-t-0"
        >
          {PAGES.map(([to, label, icon]) => (
            <Link
              key={to}
              to={to}
              activeOptions={{ exact: to === '/dashboard' }}
              className="flex flex-1 flex-col items-center gap-0.5 px-3 py-2 font-medium text-soft text-xs hover:text-ink aria-[current=page]:text-accent md:flex-none md:flex-row md:gap-3 md:rounded-lg md:text-sm md:aria-[current=page]:bg-tint"
            >
              <Icon name={icon} />
              {label}
            </Link>
          ))}
        </nav>
        <Uploads />
        <div className="flex items-center gap-1 text-sm md:mt-auto md:flex-col md:items-stretch md:gap-2">
          <WorkspaceChoice name={workspace.name} />
          <Link
            to="/dashboard/account"
            title={texts.nav.account}
            className="flex min-w-0 items-center gap-2 rounded-lg p-2 text-soft hover:bg-tint/60 hover:text-ink aria-[current=page]:bg-tint aria-[current=page]:text-accent"
          >
            <Icon name="account" />
            <span className="max-md:sr-only md:truncate">
              {user.name}
              {role === 'viewer' && ` · ${texts.shell.viewer}`}
            </span>
          </Link>
          <div className="flex items-center gap-1 md:justify-between md:border-line md:border-t md:pt-3">
            <ThemeSwitch />
            <IconButton icon="help" label={texts.shell.help} onClick={onHelp} className="max-md:hidden" />
            <IconButton icon="out" label={texts.signOut} onClick={() => signOut.mutate()} />
          </div>
        </div>
      </header>
      {open === 'palette' && (
        <Suspense>
          <Palette onClose={close} />
        </Suspense>
      )}
      {open === 'help' && <Help onClose={close} />}
    </>
  )
}
