/** Serves the log over HTTP. */
import type { ServerResponse } from 'node:http'
import { AgentdError } from './agentd-errors.ts'
import type { Log } from './logs.ts'
import type { LogLine } from './protocol.ts'
import { queryNumber, type Service } from './server.ts'

/** A follower that reads too slowly loses lines once this many bytes wait for it. */
const FOLLOWER_BYTES = 262_144
const FOLLOWERS = 16
/** An agent may log nothing for hours, and idle connections are closed. */
const KEEP_ALIVE_MS = 10_000

/**
 * `GET /v1/logs?lines=N` (default 100) and `GET /v1/logs/stream?lines=N` (default 0): the last lines, then each new
 * one. Empty lines keep a stream open.
 */
export function logService({ log }: { log: Log }): Service {
  return {
    routes: [
      {
        method: 'GET',
        path: '/v1/logs',
        handle: async ({ url }) => ({ body: { lines: log.lines(queryNumber(url, 'lines', 100)) } }),
      },
      {
        method: 'GET',
        path: '/v1/logs/stream',
        handle: async ({ url, res, signal }) => {
          if (log.followers >= FOLLOWERS)
            throw new AgentdError('busy', `${FOLLOWERS} clients already follow the log`)
          res.writeHead(200, { 'content-type': 'application/x-ndjson' })
          follow(log, res, { lines: queryNumber(url, 'lines', 0), signal })
          return undefined
        },
      },
    ],
  }
}

/** Writes lines as they arrive. A slow reader loses some lines, and is told how many, instead of filling the memory. */
function follow(log: Log, res: ServerResponse, options: { lines: number; signal: AbortSignal }): void {
  let dropped = 0
  const send = (line: LogLine) => res.write(`${JSON.stringify(line)}\n`)
  const onLine = (line: LogLine) => {
    if (res.writableLength > FOLLOWER_BYTES) dropped++
    else send(line)
  }
  const onDrain = () => {
    if (dropped === 0) return
    const message = `${dropped} lines were left out: the reader is too slow`
    dropped = 0
    send({ timestamp: new Date().toISOString(), level: 'WARN', source: 'agentd', message })
  }
  for (const line of options.lines > 0 ? log.lines(options.lines) : []) send(line)
  // Sends the head now, even if no line arrives for a while.
  res.flushHeaders()
  res.on('drain', onDrain)
  const unsubscribe = log.subscribe(onLine)
  const keepAlive = setInterval(() => res.writableLength === 0 && res.write('\n'), KEEP_ALIVE_MS)
  const end = () => {
    clearInterval(keepAlive)
    unsubscribe()
    res.off('drain', onDrain)
    res.end()
  }
  if (options.signal.aborted) end()
  else options.signal.addEventListener('abort', end, { once: true })
}
