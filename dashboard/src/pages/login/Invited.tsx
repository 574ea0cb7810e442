import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { type ReactNode, useState } from 'react'
import { api, RequestError, unwrap } from '../../api/client.ts'
import { useMe } from '../../api/me.ts'
import { Button, Field, Problem } from '../../parts/ui.tsx'
import { texts } from '../../texts.ts'

const t = texts.login

/**
 * Accepts an invitation as the signed-in user, or as a new user with a chosen name.
 * @param props.children the ways to sign in, for existing users.
 */
export function Invited({ token, children }: { token: string; children: ReactNode }) {
  const [name, setName] = useState('')
  const me = useMe()
  const queries = useQueryClient()
  const navigate = useNavigate()
  const isOut = me.error instanceof RequestError && me.error.status === 401
  const user = isOut ? undefined : me.data?.data.user
  const join = useMutation({
    mutationFn: () =>
      user
        ? unwrap(api.POST('/v0/sessions/join', { body: { token } }))
        : unwrap(api.POST('/v0/login/invitation', { body: { token, name } })),
    async onSuccess() {
      await queries.resetQueries()
      // A new user has no way to sign in again yet: the account page offers some.
      await navigate({ to: user ? '/dashboard' : '/dashboard/account' })
    },
  })
  if (me.isPending) return null
  // A signed-in user must not become a different user.
  if (me.error && !isOut)
    return (
      <>
        <Problem error={me.error} />
        <Button onClick={() => void me.refetch()}>{t.again}</Button>
      </>
    )
  return (
    <>
      <form
        className="space-y-4"
        onSubmit={(event) => {
          event.preventDefault()
          join.mutate()
        }}
      >
        <p className="text-soft text-sm">
          {t.invited} {user ? t.known(user.name) : t.choose}
        </p>
        <Problem error={join.error} />
        {!user && (
          <div className="text-left">
            <Field label={t.name} value={name} onChange={(event) => setName(event.target.value)} required />
          </div>
        )}
        <Button look="main" type="submit" className="w-full" disabled={join.isPending}>
          {user ? t.joinAs(user.name) : t.join}
        </Button>
      </form>
      {!user && children}
    </>
  )
}
