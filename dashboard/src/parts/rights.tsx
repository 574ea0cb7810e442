import { createContext, type ReactNode, useContext } from 'react'
import { useRights } from '../api/me.ts'

const MayChange = createContext(true)

/** True if the user may change what the page shows. Otherwise buttons that change something are left out. */
export const useMayChange = () => useContext(MayChange)

/** Wraps pages that viewers may not change. */
export function ForMembers({ children }: { children: ReactNode }) {
  const { mayWrite } = useRights()
  return <MayChange value={mayWrite}>{children}</MayChange>
}

/** Fields that are disabled for users who may not change anything. */
export function Fields({ children, className = 'contents' }: { children: ReactNode; className?: string }) {
  return (
    // By default, a fieldset is as wide as its content.
    <fieldset disabled={!useMayChange()} className={`min-w-0 ${className}`}>
      {children}
    </fieldset>
  )
}
