/** The other side of webhooks: a server on loopback that records what it is sent. */
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

interface Received {
  headers: Record<string, string>
  body: string
}
type Answer = (response: ServerResponse, at: number) => void

const take: Answer = (response) => response.writeHead(204).end()

/** @param wanted its port; a free one unless given. It returns 204 until `answerWith`. */
export async function startReceiver(wanted = 0) {
  const received: Received[] = []
  const state = { answer: take }
  const server = createServer(async (request, response) => {
    // The sender may have been killed.
    const body = await text(request).catch(() => undefined)
    if (body === undefined) return
    received.push({ headers: request.headers as Record<string, string>, body })
    state.answer(response, received.length)
  })
  await new Promise<void>((done) => server.listen(wanted, '127.0.0.1', done))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}/hook`,
    destination: { host: '127.0.0.1', port },
    /** For `BERTH_WEBHOOK_ALLOW`. */
    allowed: `127.0.0.1:${port}`,
    received,
    /** The ids of received deliveries, in order. */
    ids: () => received.map(({ headers }) => headers['webhook-id']),
    answerWith(next: Answer) {
      state.answer = next
    },
    /** Answers nothing until the returned function is called. */
    hold(): () => void {
      const held: ServerResponse[] = []
      state.answer = (response) => held.push(response)
      return () => {
        state.answer = take
        for (const response of held) take(response, 0)
      }
    },
    async stop() {
      server.closeAllConnections()
      await new Promise((done) => server.close(done))
    },
  }
}
export type Receiver = Awaited<ReturnType<typeof startReceiver>>
