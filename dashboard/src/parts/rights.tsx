import { createContext, type ReactNode, useContext } from 'react'
import { useRights } from '../api/me.ts'

const MayChange = createContext(true)

/** True where the user may change what the page shows; otherwise buttons that change something are left out. */
export const useMayChange = () => useContext(MayChange)

/** Pages on which viewers change nothing. */
export function ForMembers({ children }: { children: ReactNode }) {
  const { mayWrite } = useRights()
  return <MayChange value={mayWrite}>{children}</MayChange>
}

/** Fields that only who may change something can fill in. */
export function Fields({ children, className = 'contents' }: { children: ReactNode; className?: string }) {
  return (
    // A fieldset is as wide as what it has, unless told.
    <fieldset disabled={!useMayChange()} className={`min-w-0 ${className}`}>
      {children}
    </fieldset>
  )
}
