/** The other side of webhooks: a server on loopback that keeps what it is sent. */
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

export interface Received {
  headers: Record<string, string>
  body: string
}

/** @param answer how a request is answered, and with which status; a 204 where it says nothing. */
export async function startReceiver(
  answer: (response: ServerResponse, at: number) => void = (r) => r.writeHead(204).end(),
) {
  const received: Received[] = []
  const state = { answer }
  const server = createServer(async (request, response) => {
    const body = await text(request)
    received.push({ headers: request.headers as Record<string, string>, body })
    state.answer(response, received.length)
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}/hook`,
    destination: { host: '127.0.0.1', port },
    received,
    /** The ids of what was received, in order. */
    ids: () => received.map(({ headers }) => headers['webhook-id']),
    answerWith(next: typeof answer) {
      state.answer = next
    },
    async stop() {
      server.closeAllConnections()
      await new Promise((done) => server.close(done))
    },
  }
}
export type Receiver = Awaited<ReturnType<typeof startReceiver>>
