import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { ConfigError } from '../config.ts'

export interface Listening {
  url: string
  /** Takes no more requests and waits for those under way; long polls and streams are cut after 5 s. */
  close(): Promise<void>
}

const DRAIN_MS = 5000

/** @throws ConfigError when the port is taken. */
export function listen(app: RequestListener, port: number, host: string): Promise<Listening> {
  const server = createServer(app)
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) =>
      reject(error.code === 'EADDRINUSE' ? new ConfigError(`PORT: ${port} is in use on ${host}`) : error),
    )
    server.listen(port, host, () => {
      const { port: bound } = server.address() as AddressInfo
      const name = ['0.0.0.0', '::', '127.0.0.1'].includes(host) ? 'localhost' : host
      resolve({ url: `http://${name}:${bound}`, close })
    })
  })

  function close(): Promise<void> {
    return new Promise((resolve) => {
      server.close(() => resolve())
      server.closeIdleConnections()
      setTimeout(() => server.closeAllConnections(), DRAIN_MS).unref()
    })
  }
}
