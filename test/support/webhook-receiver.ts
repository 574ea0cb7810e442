/** A target of webhooks on loopback, which notes all that it is sent. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

export interface Received {
  /** `webhook-id`. */
  id: string
  headers: Record<string, string>
  body: string
}

export interface WebhookReceiver {
  url: string
  /** For `BERTH_WEBHOOK_ALLOW`. */
  allowed: string
  received: Received[]
  /** Keeps what arrives from now on without an answer; what it returns has all of it answered. */
  hold(): () => void
  close(): Promise<void>
}

export async function startWebhookReceiver(): Promise<WebhookReceiver> {
  const received: Received[] = []
  let held: Promise<void> | undefined
  const server = createServer(async (request, response) => {
    try {
      const body = await text(request)
      const headers = request.headers as Record<string, string>
      received.push({ id: headers['webhook-id'] ?? '', headers, body })
      await held
      response.writeHead(204).end()
    } catch {
      // Who sends was killed.
      response.destroy()
    }
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  const allowed = `127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    url: `http://${allowed}/hook`,
    allowed,
    received,
    hold() {
      const { promise, resolve } = Promise.withResolvers<void>()
      held = promise
      return () => {
        held = undefined
        resolve()
      }
    },
    async close() {
      server.closeAllConnections()
      await new Promise((closed) => server.close(closed))
    },
  }
}
