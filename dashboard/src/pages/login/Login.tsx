import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useEffect, useState } from 'react'
import { api, unwrap } from '../../api/client.ts'
import { Button, Copy, Problem } from '../../parts/ui.tsx'
import { texts } from '../../texts.ts'

/** The button spends the link's token; opening the link does not. */
export function Login() {
  const [token] = useState(() => new URLSearchParams(location.hash.slice(1)).get('token'))
  const queries = useQueryClient()
  const navigate = useNavigate()
  useEffect(() => {
    if (token) history.replaceState(history.state, '', location.pathname)
    document.title = `${texts.login.title} · ${texts.name}`
  }, [token])
  const signIn = useMutation({
    mutationFn: (token: string) => unwrap(api.POST('/v0/login', { body: { token } })),
    async onSuccess() {
      await queries.resetQueries()
      await navigate({ to: '/dashboard' })
    },
  })
  return (
    <main className="grid min-h-dvh place-items-center p-4">
      <div className="w-full max-w-sm space-y-4 rounded-2xl border border-line bg-card p-8 text-center shadow-sm">
        <img src="/dashboard/icon.svg" alt="" className="mx-auto size-14" />
        <h1 className="font-semibold text-xl">{texts.login.title}</h1>
        {!isSecureContext && <p className="text-busy text-sm">{texts.login.risk}</p>}
        {token && !signIn.isError ? (
          <>
            <p className="text-soft text-sm">{texts.login.ready}</p>
            <Button
              look="main"
              className="w-full"
              disabled={signIn.isPending}
              onClick={() => signIn.mutate(token)}
            >
              {texts.login.button}
            </Button>
          </>
        ) : (
          <>
            <Problem error={signIn.error} />
            <p className="text-soft text-sm">{texts.login.none}</p>
            <div className="flex items-center justify-between gap-2 rounded-lg border border-line bg-page p-2 pl-3">
              <code className="text-sm">{texts.login.command}</code>
              <Copy text={texts.login.command} />
            </div>
          </>
        )}
      </div>
    </main>
  )
}
