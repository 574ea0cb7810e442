import { createServer, type RequestListener } from 'node:http'
import { bind } from '../lib/net/bind.ts'
import { refuseMalformed } from '../lib/net/malformed.ts'
import { shownHost } from '../lib/net/shown-host.ts'
import { isWebSocket } from '../lib/net/websocket.ts'
import { serveUpgrades, toOriginForm } from './upgrade.ts'

export interface Listening {
  url: string
  /**
   * Accepts no more requests and waits for running ones, which are cut after 5 s. The owners of long polls and upgraded
   * connections must end them first.
   */
  close(): Promise<void>
  /** The number of running requests. */
  requests(): number
  /** Cuts running requests. */
  cut(): void
}

const DRAIN_MS = 5000
/** How often to close connections that became idle while the server closes: Node closes idle connections only once. */
const IDLE_MS = 50
/** Without a request timeout, Node would have none for headers. It checks for late headers at this interval. */
const HEADERS_MS = 20_000
const LATE_MS = 5000
/** Errors of requests that Node's parser rejects, by status. */
const MALFORMED: Record<number, string> = {
  400: 'This is not a valid HTTP request',
  408: 'The headers did not arrive in time',
  431: 'The URL and the headers are longer than 16 KiB',
}
/** Longer than the minute for which proxies keep a connection open, so that the sender closes first. */
const KEEP_ALIVE_MS = 75_000

/**
 * Counts a connection from an address. @returns a function that releases it. @throws if there are too many, which
 * closes the connection.
 */
type Admit = (address: string | undefined) => () => void

/** Serves `app` on PORT and HOST. @throws ConfigError naming the setting if it cannot listen there. */
export async function listen(
  app: RequestListener,
  { port, host, admit }: { port: number; host: string; admit: Admit },
): Promise<Listening> {
  // Node would end every request, including uploads, after five minutes: bodies have their own limits.
  const server = createServer(
    {
      requestTimeout: 0,
      headersTimeout: HEADERS_MS,
      connectionsCheckingInterval: LATE_MS,
      keepAliveTimeout: KEEP_ALIVE_MS,
      shouldUpgradeCallback: isWebSocket,
    },
    app,
  )
  server.on('connection', (socket) => {
    try {
      socket.once('close', admit(socket.remoteAddress))
    } catch {
      socket.destroy()
    }
  })
  server.prependListener('request', toOriginForm)
  let requests = 0
  server.prependListener('request', (_req, res) => {
    requests++
    res.once('close', () => requests--)
  })
  refuseMalformed(server, 'application/json', (status) => JSON.stringify({ error: MALFORMED[status] }))
  serveUpgrades(server, app)
  const bound = await bind(server, { host, port, settings: { host: 'HOST', port: 'PORT' } })
  return {
    url: `http://${shownHost(host)}:${bound}`,
    close: () =>
      new Promise((resolve) => {
        const idle = setInterval(() => server.closeIdleConnections(), IDLE_MS)
        const drained = setTimeout(() => server.closeAllConnections(), DRAIN_MS)
        server.close(() => {
          clearInterval(idle)
          clearTimeout(drained)
          resolve()
        })
      }),
    requests: () => requests,
    cut: () => server.closeAllConnections(),
  }
}
