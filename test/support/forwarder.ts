/** A TCP proxy in front of a server, whose target can change: as operators use for servers that fail over. */
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { connect, createServer, type Socket } from 'node:net'

export interface Forwarder {
  port: number
  /** Closes all connections, and leads new ones to this port of loopback. */
  lead(port: number): void
  stop(): void
}

export async function startForwarder(first: number): Promise<Forwarder> {
  let target = first
  const open = new Set<Socket>()
  const server = createServer((client) => {
    const upstream = connect(target, '127.0.0.1')
    for (const [one, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      open.add(one)
      one.on('error', () => {})
      one.on('close', () => {
        open.delete(one)
        other.destroy()
      })
      one.pipe(other)
    }
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const cut = () => {
    for (const socket of open) socket.destroy()
  }
  return {
    port: (server.address() as AddressInfo).port,
    lead(port) {
      target = port
      cut()
    },
    stop() {
      server.close()
      cut()
    },
  }
}
