/** The way to agents, from the side of `web` and `worker`: a tunnel through the host role's way in. */
import { request } from 'node:http'
import type { Socket } from 'node:net'

export interface Way {
  /** Where the way in is. */
  hostname: string
  port: number
  /** HOST_KEY. */
  key: string
}

/** Longer than the way in takes to give up, so that its reason arrives. */
const OPEN_MS = 5000

/** The way in opens no tunnel. */
export class WayRefused extends Error {
  override name = 'WayRefused'
  /** What it answered: 502 and 504 are about the agent's address, anything else is about the way in itself. */
  readonly status: number

  constructor(status: number) {
    super(REFUSALS[status] ?? `the host role answered ${status}`)
    this.status = status
  }
}

/** What the way in means by a status, for the log of the one who asked. */
const REFUSALS: Record<number, string> = {
  403: 'the host role takes nobody to this address',
  407: 'the host role has another HOST_KEY',
  502: 'nothing answers at this address',
  503: 'the host role has no tunnel free',
  504: 'nothing answers at this address in time',
}

/**
 * Opens a tunnel (`CONNECT`, RFC 9110, 9.3.6) to an `address:port`. Whoever gets the connection closes it.
 * @throws WayRefused, or another Error that says why there is none, within 5 s; and what `signal` says.
 */
export function openWay({ hostname, port, key }: Way, address: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const sent = request({
      agent: false,
      host: hostname,
      port,
      method: 'CONNECT',
      path: address,
      headers: { host: address, 'proxy-authorization': `Bearer ${key}` },
    })
    const late = setTimeout(() => sent.destroy(new Error('the host role does not answer')), OPEN_MS)
    sent.once('connect', (response, socket: Socket, head: Buffer) => {
      clearTimeout(late)
      // What breaks later ends in a close, which the user of the connection sees.
      socket.on('error', () => {})
      if (response.statusCode !== 200) {
        socket.destroy()
        return reject(new WayRefused(response.statusCode ?? 0))
      }
      if (head.length > 0) socket.unshift(head)
      resolve(socket)
    })
    // Whatever is there takes no CONNECT.
    sent.once('response', (response) => {
      reject(new WayRefused(response.statusCode ?? 0))
      sent.destroy()
    })
    sent.on('error', reject)
    sent.once('close', () => {
      clearTimeout(late)
      reject(new Error('the host role closed the connection'))
    })
    sent.end()
  })
}
