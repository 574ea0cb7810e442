/** Calls of gRPC with brokered secrets: HTTP/2 on both sides, with trailers. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createSecureServer, type IncomingHttpHeaders, type ServerHttp2Stream } from 'node:http2'
import { type TestContext, test } from 'node:test'
import { AUTHORIZED, HOST, ROOTS, startBroker, VALUE } from '../../support/brokered.ts'
import { listen } from '../../support/egress.ts'

const GRPC = {
  'content-type': 'application/grpc',
  te: 'trailers',
  'grpc-accept-encoding': 'gzip',
  ...AUTHORIZED,
}
const message = (text: string) => Buffer.from(`\0\0\0\0${String.fromCharCode(text.length)}${text}`, 'latin1')

async function start(
  t: TestContext,
  serve: (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => void,
) {
  const server = createSecureServer(ROOTS.leafFor(HOST))
  server.on('stream', serve)
  const broker = await startBroker(t, { [`${HOST}:443`]: await listen(t, server) })
  return broker.connectHttp2()
}

test('a call of gRPC streams both ways, masked message by message, and ends with its trailers', async (t) => {
  const seen: IncomingHttpHeaders[] = []
  const session = await start(t, (stream, headers) => {
    seen.push(headers)
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true })
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0', 'x-echo': VALUE }))
    stream.on('data', (data) => stream.write(data))
    stream.on('end', () => stream.end())
  })
  const call = session.request({ ':path': '/pkg.Service/Method', ':method': 'POST', ...GRPC })
  const ask = async (text: string) => {
    call.write(message(text))
    return String((await once(call, 'data'))[0])
  }
  assert.equal(await ask('hello'), message('hello').toString())
  assert.equal(await ask(`my ${VALUE}`), message(`my ${'*'.repeat(VALUE.length)}`).toString())
  assert.equal(
    await ask(VALUE.slice(0, 9)),
    message(VALUE.slice(0, 9)).toString(),
    'a message waits for no other',
  )
  const trailers = once(call, 'trailers')
  call.end()
  call.resume()
  const [{ 'grpc-status': status, 'x-echo': echo }] = await trailers
  assert.deepEqual([status, echo], ['0', '*'.repeat(VALUE.length)])
  const [{ authorization, te, 'grpc-accept-encoding': encodings } = assert.fail()] = seen
  assert.deepEqual([authorization, te, encodings], [`Bearer ${VALUE}`, 'trailers', undefined])
})

test('a failed call of gRPC has its status in the only headers', async (t) => {
  const session = await start(t, (stream) => {
    stream.respond(
      { ':status': 200, 'content-type': 'application/grpc', 'grpc-status': '16' },
      { endStream: true },
    )
  })
  const call = session.request({ ':path': '/pkg.Service/Method', ':method': 'POST', ...GRPC })
  call.end(message('x'))
  const [headers, flags] = await once(call, 'response')
  assert.deepEqual([headers['grpc-status'], flags & 1], ['16', 1])
})
