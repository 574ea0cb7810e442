import type { QueryClient } from '@tanstack/react-query'

const PAUSE_MS = 3000
/** Events that come together are one reason to read again. */
const TOGETHER_MS = 300

/** Reads again what is shown whenever the API tells of a change. Returns what ends that. */
export function followChanges(queries: QueryClient): () => void {
  const stopped = new AbortController()
  let isDue = false
  const changed = () => {
    if (isDue) return
    isDue = true
    setTimeout(() => {
      isDue = false
      void queries.invalidateQueries()
    }, TOGETHER_MS)
  }
  const follow = async () => {
    while (!stopped.signal.aborted) {
      await read(stopped.signal, changed).catch(() => {})
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
    }
  }
  void follow()
  return () => stopped.abort()
}

async function read(signal: AbortSignal, changed: () => void): Promise<void> {
  const { body, ok } = await fetch('/v0/events', { signal })
  if (!ok || !body) return
  for (const reader = body.pipeThrough(new TextDecoderStream()).getReader(); ; ) {
    const { done, value } = await reader.read()
    if (done) return
    if (value.includes('data:')) changed()
  }
}
