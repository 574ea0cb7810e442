import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { type ReactNode, useEffect, useRef, useState } from 'react'
import { api, unwrap } from '../../api/client.ts'
import { signInByPasskey } from '../../api/passkeys.ts'
import { Copy } from '../../parts/copy.tsx'
import { Button, Problem } from '../../parts/ui.tsx'
import { texts } from '../../texts.ts'
import { comeBack } from './come-back.ts'
import { Invited } from './Invited.tsx'

/** Reads the URL: a link's token, an invitation, or the OpenID provider's response. */
function readAddress() {
  const hash = new URLSearchParams(location.hash.slice(1))
  const query = new URLSearchParams(location.search)
  const isAnswer = query.has('state') && (query.has('code') || query.has('error'))
  return {
    token: hash.get('token'),
    invitation: hash.get('invitation'),
    answer: isAnswer ? location.search.slice(1) : undefined,
    isLink: query.get('state')?.startsWith('link.') ?? false,
  }
}

/** All ways to sign in, and to accept an invitation. A link is spent by the button, not by opening the page. */
export function Login() {
  const [{ token, invitation, answer, isLink }, setAddress] = useState(readAddress)
  const queries = useQueryClient()
  const navigate = useNavigate()
  useEffect(() => {
    if (token || invitation || answer) history.replaceState(history.state, '', location.pathname)
    document.title = `${texts.login.title} · ${texts.name}`
  }, [token, invitation, answer])
  const ways = useQuery({ queryKey: ['login'], queryFn: () => unwrap(api.GET('/v0/login')) })
  const signIn = useMutation({
    mutationFn: (how: () => Promise<unknown>) => how(),
    async onSuccess() {
      await queries.resetQueries()
      // An invited user joins as the user who just signed in.
      if (!invitation && !comeBack()) await navigate({ to: isLink ? '/dashboard/account' : '/dashboard' })
    },
  })
  const { mutate: finish, reset } = signIn
  useEffect(() => {
    // If this page is already open, opening a link changes only the hash of the URL.
    const readAgain = () => {
      reset()
      setAddress(readAddress())
    }
    addEventListener('hashchange', readAgain)
    return () => removeEventListener('hashchange', readAgain)
  }, [reset])
  const isBegun = useRef(false)
  useEffect(() => {
    if (answer === undefined || isBegun.current) return
    isBegun.current = true
    const body = { query: answer }
    finish(() =>
      isLink
        ? unwrap(api.POST('/v0/identities', { body }))
        : unwrap(api.POST('/v0/login/oidc/finish', { body })),
    )
  }, [answer, isLink, finish])
  const goToProvider = useMutation({
    mutationFn: () => unwrap(api.POST('/v0/login/oidc', { body: invitation ? { invitation } : {} })),
    onSuccess: ({ data }) => location.assign(data.url),
  })
  const isBusy = signIn.isPending || goToProvider.isPending
  const { passkey, oidc } = ways.data?.data ?? {}
  const hasLink = token !== null && !signIn.isError
  const others = !hasLink && (
    <>
      {passkey && (
        <Way isMain={!invitation} disabled={isBusy} onClick={() => signIn.mutate(signInByPasskey)}>
          {texts.login.passkey}
        </Way>
      )}
      {oidc && (
        <Way isMain={!passkey && !invitation} disabled={isBusy} onClick={() => goToProvider.mutate()}>
          {texts.login.oidc(oidc.name)}
        </Way>
      )}
    </>
  )
  return (
    <main className="grid min-h-dvh place-items-center p-4">
      <div className="w-full max-w-sm space-y-4 rounded-2xl border border-line bg-card p-8 text-center shadow-sm">
        <img src="/dashboard/icon.svg" alt="" className="mx-auto size-14" />
        <h1 className="font-semibold text-xl">{invitation ? texts.login.joinTitle : texts.login.title}</h1>
        {!isSecureContext && <p className="text-busy text-sm">{texts.login.risk}</p>}
        <Problem error={signIn.error ?? goToProvider.error ?? ways.error} />
        {hasLink && (
          <Way
            hint={texts.login.ready}
            isMain
            disabled={isBusy}
            onClick={() => signIn.mutate(() => unwrap(api.POST('/v0/login', { body: { token } })))}
          >
            {texts.login.button}
          </Way>
        )}
        {invitation ? (
          <Invited token={invitation}>
            {(passkey || oidc) && <p className="text-soft text-sm">{texts.login.orSignIn}</p>}
            {others}
          </Invited>
        ) : (
          others
        )}
        {!hasLink && !invitation && (
          <>
            <p className="text-soft text-sm">{passkey || oidc ? texts.login.otherwise : texts.login.none}</p>
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

function Way({
  hint,
  isMain,
  disabled,
  onClick,
  children,
}: {
  hint?: string
  isMain: boolean
  disabled: boolean
  onClick: () => void
  children: ReactNode
}) {
  return (
    <>
      {hint && <p className="text-soft text-sm">{hint}</p>}
      <Button look={isMain ? 'main' : 'plain'} className="w-full" disabled={disabled} onClick={onClick}>
        {children}
      </Button>
    </>
  )
}
