import { useEffect, useState } from 'react'
import { api, serverEvents, unwrap } from '../../../api/client.ts'

export interface Line {
  /** The number of the line since the page opened, used as its key. */
  id: number
  timestamp: string
  level: string
  source: string
  message: string
}

/** The number of lines to read first, and the most that the page keeps. */
const LAST = 1000
const MOST = 5000
const PAUSE_MS = 3000
/** Lines within this time are rendered together. */
const TOGETHER_MS = 150

/** Follows the log of an agent. After a disconnect, it reads the log again and replaces the lines. */
export function useLog(agentId: string) {
  const [lines, setLines] = useState<Line[]>([])
  const [error, setError] = useState<Error | null>(null)
  const [isOpen, setOpen] = useState(false)
  useEffect(() => {
    const gone = new AbortController()
    let waiting: Line[] = []
    let isNew = true
    let timer: ReturnType<typeof setTimeout> | undefined
    let lastId = 0
    const show = () => {
      timer = undefined
      const [come, replaces] = [waiting, isNew]
      waiting = []
      isNew = false
      setLines((before) => [...(replaces ? [] : before), ...come].slice(-MOST))
    }
    const take = (name: string, data: unknown) => {
      if (name !== 'line') return
      waiting.push({ ...(data as Line), id: ++lastId })
      timer ??= setTimeout(show, TOGETHER_MS)
    }
    const follow = async () => {
      const options = {
        params: { path: { agentId }, query: { lines: LAST } },
        parseAs: 'stream' as const,
        signal: gone.signal,
      }
      const body = await unwrap(api.GET('/v0/agents/{agentId}/logs/stream', options))
      setError(null)
      setOpen(true)
      isNew = true
      for await (const { name, data } of serverEvents(body as unknown as ReadableStream<Uint8Array>))
        take(name, JSON.parse(data))
    }
    const keepFollowing = async () => {
      while (!gone.signal.aborted) {
        await follow().catch((why) => !gone.signal.aborted && setError(why))
        setOpen(false)
        await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
      }
    }
    void keepFollowing()
    return () => {
      gone.abort()
      clearTimeout(timer)
    }
  }, [agentId])
  return { lines, error, isOpen }
}
