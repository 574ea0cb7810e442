import { createServer, type RequestListener } from 'node:http'
import { bind } from '../net/bind.ts'
import { isWebSocket } from '../net/websocket.ts'
import { toOriginForm } from './origin-form.ts'
import { serveUpgrades } from './upgrade.ts'

export interface Listening {
  url: string
  /**
   * Takes no more requests and waits for those under way; long polls and streams are cut after 5 s. Connections that
   * were upgraded are to be closed before, by whoever took them.
   */
  close(): Promise<void>
}

const DRAIN_MS = 5000
/** Without a limit on the request, Node would have none on its headers. */
const HEADERS_MS = 60_000
/** Longer than the minute for which proxies keep a connection: the one who sends must be the first to drop it. */
const KEEP_ALIVE_MS = 75_000
/** Addresses that a person on this machine reaches as localhost. */
const LOCAL = ['0.0.0.0', '::', '127.0.0.1']

/** Serves `app` on PORT and HOST. @throws ConfigError naming the setting when it cannot listen there. */
export async function listen(app: RequestListener, port: number, host: string): Promise<Listening> {
  // Node would end every request, an upload too, after five minutes: bodies have bounds of their own.
  const server = createServer(
    {
      requestTimeout: 0,
      headersTimeout: HEADERS_MS,
      keepAliveTimeout: KEEP_ALIVE_MS,
      shouldUpgradeCallback: isWebSocket,
    },
    app,
  )
  server.prependListener('request', toOriginForm)
  serveUpgrades(server, app)
  const bound = await bind(server, { host, port, settings: { host: 'HOST', port: 'PORT' } })
  return {
    url: `http://${LOCAL.includes(host) ? 'localhost' : host}:${bound}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeIdleConnections()
        setTimeout(() => server.closeAllConnections(), DRAIN_MS).unref()
      }),
  }
}
