import { createServer, type RequestListener } from 'node:http'
import { bind } from '../lib/net/bind.ts'
import { shownHost } from '../lib/net/shown-host.ts'
import { isWebSocket } from '../lib/net/websocket.ts'
import { serveUpgrades, toOriginForm } from './upgrade.ts'

export interface Listening {
  url: string
  /**
   * Takes no more requests and waits for those under way; they are cut after 5 s. Long polls and connections that
   * were upgraded are to be ended before, by whoever took them.
   */
  close(): Promise<void>
  /** How many requests are under way. */
  requests(): number
  /** Cuts what is under way. */
  cut(): void
}

const DRAIN_MS = 5000
/** How often connections are closed that have become idle while the server closes: Node does so only once. */
const IDLE_MS = 50
/** Without a limit on the request, Node would have none on its headers. It looks for late ones this often. */
const HEADERS_MS = 20_000
const LATE_MS = 5000
/** Longer than the minute for which proxies keep a connection: the one who sends must be the first to drop it. */
const KEEP_ALIVE_MS = 75_000

/** Counts a connection from an address. @returns forgets it. @throws for one too many, which is closed. */
type Admit = (address: string | undefined) => () => void

/** Serves `app` on PORT and HOST. @throws ConfigError naming the setting when it cannot listen there. */
export async function listen(
  app: RequestListener,
  { port, host, admit }: { port: number; host: string; admit: Admit },
): Promise<Listening> {
  // Node would end every request, an upload too, after five minutes: bodies have bounds of their own.
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
