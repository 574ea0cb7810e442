import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { api, unwrap } from '../../api/client.ts'
import { Note } from '../../parts/section.tsx'
import { Button } from '../../parts/ui.tsx'
import { texts } from '../../texts.ts'

const words = texts.overview.comeBack
const KEY = 'berth-come-back'

/**
 * Tells people who signed in by a link, which works once, how to come back: by a passkey if browsers can make one at this
 * address, or by a new link. Shows nothing to people who have a passkey, or a linked identity.
 */
export function ComeBack() {
  const [isOff, setOff] = useState(() => localStorage.getItem(KEY) === 'off')
  const ways = useQuery({
    queryKey: ['login'],
    queryFn: () => unwrap(api.GET('/v0/login')),
    enabled: !isOff,
  }).data?.data
  const passkeys = useQuery({
    queryKey: ['passkeys'],
    queryFn: () => unwrap(api.GET('/v0/passkeys')),
    enabled: !isOff,
  }).data?.data.passkeys
  const identities = useQuery({
    queryKey: ['identities'],
    queryFn: () => unwrap(api.GET('/v0/identities')),
    enabled: !isOff && ways?.oidc !== null && ways !== undefined,
  }).data?.data.identities
  const isLinked = ways?.oidc && identities?.length !== 0
  if (isOff || !ways || isLinked || passkeys?.length !== 0) return null
  const dismiss = () => {
    localStorage.setItem(KEY, 'off')
    setOff(true)
  }
  return (
    <Note
      actions={
        <>
          {ways.passkey && (
            <Link
              to="/dashboard/account"
              className="rounded-lg border border-line bg-card px-3 py-1.5 font-medium hover:border-accent"
            >
              {texts.account.passkeys.add}
            </Link>
          )}
          <Button onClick={dismiss}>{words.dismiss}</Button>
        </>
      }
    >
      {words.link} {ways.passkey ? words.passkey : words.otherwise}
    </Note>
  )
}
