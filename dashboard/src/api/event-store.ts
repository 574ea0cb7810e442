/** The latest events of the stream, kept in memory, and the state of the stream. */
import { useSyncExternalStore } from 'react'

/** An event, as the API sends it. */
export interface Change {
  id: string
  type: string
  createdAt: string
  resource: { type: string; id: string }
  data: Record<string, unknown>
}

/** `back` is `on` again, for a moment. */
export type Link = 'on' | 'off' | 'back'

interface Told {
  /** The newest first. */
  changes: readonly Change[]
  link: Link
}

const MOST = 100
const BACK_MS = 4000

let told: Told = { changes: [], link: 'on' }
const listeners = new Set<() => void>()

function set(change: Partial<Told>): void {
  told = { ...told, ...change }
  for (const listener of listeners) listener()
}

/** Adds an event unless it is already known: the API sends each event at least once. */
export function noteChange(change: Change): void {
  if (change.type === 'operation.progress' && change.data.state !== 'failed') return
  if (told.changes.some(({ id }) => id === change.id)) return
  set({ changes: [change, ...told.changes].slice(0, MOST) })
}

let timer: ReturnType<typeof setTimeout> | undefined

export function setLink(link: 'on' | 'off'): void {
  if (link === 'off') {
    clearTimeout(timer)
    if (told.link !== 'off') set({ link })
  } else if (told.link === 'off') {
    set({ link: 'back' })
    timer = setTimeout(() => set({ link: 'on' }), BACK_MS)
  }
}

/** Forgets the events. They belong to one workspace, and the next user to sign in must not see them. */
export const forgetChanges = (): void => set({ changes: [] })

const subscribe = (listener: () => void) => {
  listeners.add(listener)
  return () => listeners.delete(listener)
}
export const useChanges = () => useSyncExternalStore(subscribe, () => told.changes)
export const useLink = () => useSyncExternalStore(subscribe, () => told.link)
