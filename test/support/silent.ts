/** Servers that accept requests and do not respond. */
import { createSocket } from 'node:dgram'
import { Resolver } from 'node:dns/promises'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'
import { WebSocketServer } from 'ws'

export interface Silent {
  /** Host and port of an agent or a git server. A push to it ends with a request for its repository: 500. */
  address: string
  /** Host and port of a DNS server. */
  dnsAddress: string
  /** Makes the DNS server answer that there is no such name, including to earlier queries; or makes it stay silent. */
  answerDns(answers: boolean): void
  stop(): void
}

export async function startSilent(): Promise<Silent> {
  const server = createServer((req, res) => {
    if (req.url === '/v1/repository') res.writeHead(500).end()
  })
  const sockets = new WebSocketServer({ noServer: true })
  server.on('upgrade', (req, socket, head) => sockets.handleUpgrade(req, socket, head, () => {}))
  server.listen(0, '127.0.0.1')
  const dns = createSocket('udp4')
  let hasAnswer = false
  const questions: (() => void)[] = []
  dns.on('message', (query, { port, address }) => {
    const answer = () => {
      query.set([0x80 | (query[2] ?? 0), 3], 2) // no such name
      dns.send(query, port, address)
    }
    if (hasAnswer) answer()
    else questions.push(answer)
  })
  dns.bind(0, '127.0.0.1')
  await Promise.all([once(server, 'listening'), once(dns, 'listening')])
  return {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    dnsAddress: `127.0.0.1:${dns.address().port}`,
    answerDns(answers) {
      hasAnswer = answers
      if (answers) for (const answer of questions.splice(0)) answer()
    },
    stop() {
      for (const socket of sockets.clients) socket.terminate()
      server.close()
      server.closeAllConnections()
      dns.close()
    },
  }
}

/** Makes a query for TXT records repeat if it had no response in time, until the test has ended. */
export function askSilentDnsForEver(t: TestContext): void {
  const ask = Resolver.prototype.resolveTxt
  t.mock.method(Resolver.prototype, 'resolveTxt', async function (this: Resolver, name: string) {
    for (;;) {
      try {
        return await ask.call(this, name)
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ETIMEOUT') throw error
      }
    }
  })
}
