import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { text } from 'node:stream/consumers'
import { describe, it } from 'node:test'
import { freePort } from '../../../test/support/processes.ts'
import { GUARD, OPEN_NETWORK } from './guard.ts'

/** Runs the guard against a port of this machine in the role of the API server. */
async function runGuard(port: number, env: Record<string, string> = {}) {
  const child = spawn(process.execPath, ['-e', GUARD], {
    env: {
      GUARD_SECONDS: '30',
      KUBERNETES_SERVICE_HOST: '127.0.0.1',
      KUBERNETES_SERVICE_PORT: `${port}`,
      ...env,
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [[exitCode], output] = await Promise.all([once(child, 'exit'), text(child.stdout)])
  return { exitCode, output }
}

async function listen() {
  const server = createServer((socket) => socket.on('error', () => {}))
  // Not chosen by the system: after it is closed, another test could open such a port.
  const port = await freePort()
  await once(server.listen(port, '127.0.0.1'), 'listening')
  return { server, port }
}

describe('network guard', () => {
  it('the guard reports a network as open if it lets every connection through', async () => {
    const { server, port } = await listen()
    try {
      assert.deepEqual(await runGuard(port, { GUARD_SECONDS: '0.3' }), { exitCode: OPEN_NETWORK, output: '' })
    } finally {
      server.close()
    }
  })

  it('the guard reports a network that refuses connections as closed', async () => {
    const { server, port } = await listen()
    server.close()
    await once(server, 'close')
    assert.deepEqual(await runGuard(port), { exitCode: 0, output: 'shut\n' })
    assert.deepEqual(await runGuard(port, { GUARD_ROUNDS: '1' }), { exitCode: 0, output: 'shut\n' })
  })

  it('the guard waits for a network that closes only after some attempts', async () => {
    const { server, port } = await listen()
    let knocks = 0
    server.on('connection', (socket) => {
      socket.destroy()
      if (++knocks === 4) server.close()
    })
    assert.deepEqual(await runGuard(port), { exitCode: 0, output: 'shut\n' })
    assert(knocks >= 4)
  })

  it('the guard opens no connection if the network may be open', async () => {
    const { server, port } = await listen()
    server.on('connection', () => assert.fail('it opens a connection'))
    try {
      assert.deepEqual(await runGuard(port, { GUARD_SECONDS: '0' }), { exitCode: 0, output: '' })
    } finally {
      server.close()
    }
  })
})
