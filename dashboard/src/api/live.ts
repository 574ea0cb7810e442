/** Follows `GET /v0/events`, and refetches the data that an event is about. */
import type { QueryClient } from '@tanstack/react-query'
import { RequestError } from './client.ts'
import { noteChange, setLink } from './event-store.ts'
import { type Part, readEvents } from './event-stream.ts'
import { collectReads } from './invalidation.ts'

/** How far back events are shown when the page opens. */
const BEFORE_MS = 15 * 60_000
/** The API sends an id every 15 seconds, so a stream that is silent for this long is dead. */
const SILENCE_MS = 40_000
const FIRST_PAUSE_MS = 500
const LONGEST_PAUSE_MS = 10_000
/** Events older than this happened before the page read anything. */
const OLD_MS = 5000

/** @returns a function that stops following. */
export function followChanges(queries: QueryClient): () => void {
  const stopped = new AbortController()
  void follow(queries, stopped.signal)
  return () => stopped.abort()
}

async function follow(queries: QueryClient, stopped: AbortSignal): Promise<void> {
  const reads = collectReads(queries)
  const from = new Date(Date.now() - BEFORE_MS).toISOString()
  let after: string | undefined
  let failures = 0
  const began = performance.now()
  /** Shortly before the page opened, by the server's clock. The stream may have opened much later. */
  let since: number | undefined
  const opened = (date: number) => {
    failures = 0
    // After a disconnect, the session may be in another workspace, because another tab switched it.
    if (since !== undefined) reads.key(['me'])
    since ??= date - OLD_MS - (performance.now() - began)
    setLink('on')
  }
  while (!stopped.aborted) {
    await untilVisible(stopped)
    try {
      for await (const { id, change } of readWhileSeen({ from, after }, stopped, opened)) {
        after = id ?? after
        if (!change) continue
        noteChange(change)
        if (!(Date.parse(change.createdAt) < (since ?? 0))) reads.about(change)
      }
    } catch (error) {
      const status = error instanceof RequestError ? error.status : undefined
      // The session has ended: the shell reads the user again, and shows the sign-in page.
      if (status === 401) reads.key(['me'])
      if (status === 410) {
        // Berth no longer keeps the missed events: refetch everything.
        after = undefined
        reads.all()
        continue
      }
    }
    if (stopped.aborted || document.hidden) continue
    failures++
    if (failures > 1 || !navigator.onLine) setLink('off')
    await pause(Math.min(FIRST_PAUSE_MS * 2 ** (failures - 1), LONGEST_PAUSE_MS), stopped)
  }
}

/** The stream, until it is silent for too long, the network is lost or the page is hidden. */
async function* readWhileSeen(
  { from, after }: { from: string; after: string | undefined },
  stopped: AbortSignal,
  opened: (date: number) => void,
): AsyncGenerator<Part> {
  const cut = new AbortController()
  const end = () => cut.abort()
  const endHidden = () => document.hidden && cut.abort()
  let timer = setTimeout(end, SILENCE_MS)
  const heard = () => {
    clearTimeout(timer)
    timer = setTimeout(end, SILENCE_MS)
  }
  window.addEventListener('offline', end)
  document.addEventListener('visibilitychange', endHidden)
  try {
    yield* readEvents(AbortSignal.any([stopped, cut.signal]), { query: { from }, after, opened, heard })
  } finally {
    clearTimeout(timer)
    cut.abort()
    window.removeEventListener('offline', end)
    document.removeEventListener('visibilitychange', endHidden)
  }
}

/** Browsers limit connections per host, so a hidden page closes its stream and catches up later. */
async function untilVisible(stopped: AbortSignal): Promise<void> {
  while (document.hidden && !stopped.aborted) await once(document, 'visibilitychange', stopped)
}

/** Waits, but at most until the network is back. */
async function pause(ms: number, stopped: AbortSignal): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const over = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms)
  })
  await Promise.race([over, once(window, 'online', stopped)])
  clearTimeout(timer)
}

function once(target: EventTarget, name: string, stopped: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = new AbortController()
    const end = () => {
      done.abort()
      resolve()
    }
    target.addEventListener(name, end, { signal: done.signal })
    stopped.addEventListener('abort', end, { signal: done.signal })
  })
}
