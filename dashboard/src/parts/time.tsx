import { useSyncExternalStore } from 'react'
import { ago, exact } from './format.ts'

const EACH_MS = 15_000
const listeners = new Set<() => void>()
let timer: ReturnType<typeof setInterval> | undefined
let passed = 0

/** Calls a listener at each tick of the timer that all times on the page share. */
function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  timer ??= setInterval(() => {
    passed++
    for (const tell of listeners) tell()
  }, EACH_MS)
  return () => {
    listeners.delete(listener)
    if (listeners.size > 0) return
    clearInterval(timer)
    timer = undefined
  }
}

/** A relative time such as `3 minutes ago`, kept up to date; hovering shows the exact time. */
export function Time({
  at,
  words = (when) => when,
  className,
}: {
  /** ISO 8601, or milliseconds. */
  at: string | number
  /** The words around the time. */
  words?: (when: string) => string
  className?: string
}) {
  useSyncExternalStore(subscribe, () => passed)
  const iso = new Date(at).toISOString()
  return (
    <time dateTime={iso} title={exact(iso)} className={className}>
      {words(ago(iso))}
    </time>
  )
}
