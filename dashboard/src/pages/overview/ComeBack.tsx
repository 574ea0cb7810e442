import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { Note } from '../../parts/section.tsx'
import { Button } from '../../parts/ui.tsx'
import { texts } from '../../texts.ts'
import { useWayBack } from './way-back.ts'

const words = texts.overview.comeBack
const KEY = 'berth-come-back'

/**
 * Tells people who signed in by a link, which works once, how to sign in again: with a passkey if browsers can create
 * one at this URL, or with a new link. Shows nothing to people who have a passkey or a linked identity.
 */
export function ComeBack() {
  const [isOff, setOff] = useState(() => localStorage.getItem(KEY) === 'off')
  const way = useWayBack(!isOff)
  if (isOff || !way || way.has) return null
  const dismiss = () => {
    localStorage.setItem(KEY, 'off')
    setOff(true)
  }
  return (
    <Note
      actions={
        <>
          {way.passkey && (
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
      {words.link} {way.passkey ? words.passkey : words.otherwise}
    </Note>
  )
}
