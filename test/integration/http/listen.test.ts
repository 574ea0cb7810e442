/** Connections to the server: a connection beyond the limit is closed, and one that has ended frees its place. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { after, it } from 'node:test'
import { listen } from '../../../src/http/listen.ts'
import { Bounds } from '../../../src/lib/bounds.ts'
import { until } from '../../support/processes.ts'

const bounds = new Bounds({ connections: { caller: 2, process: 3 } })
const server = await listen((_req, res) => void res.end('here'), {
  port: 0,
  host: '127.0.0.1',
  admit: (address) => bounds.take('connections', { address }),
})
after(() => server.close())

it('an address has a limited number of connections', async () => {
  const open = () => {
    const socket = connect(Number(new URL(server.url).port), '127.0.0.1').on('error', () => {})
    socket.resume()
    return socket
  }
  const asks = async (socket: Socket) => {
    socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
    return `${await once(socket, 'data')}`
  }
  const [first, second] = [open(), open()]
  await until('both are open', () => bounds.underWay('connections') === 2)
  await once(open(), 'close')
  assert.match(await asks(second), /here/)
  first.destroy()
  await until('one is free', () => bounds.underWay('connections') === 1)
  const third = open()
  assert.match(await asks(third), /here/)
  for (const socket of [second, third]) socket.destroy()
})
