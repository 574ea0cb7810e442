import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, test } from 'node:test'
import { clientFrame as frame } from '../test/support/frames.ts'
import { ConnectFrame, rewriteConnect } from './connect-frame.ts'

const connect = {
  type: 'req',
  id: 'connect-1',
  method: 'connect',
  params: {
    minProtocol: 3,
    maxProtocol: 3,
    client: { id: 'cli', version: '1.0.0', platform: 'linux', mode: 'cli' },
    role: 'operator',
    scopes: ['operator.read'],
    auth: { token: 'old' },
  },
}

/** The texts of complete frames. */
function texts(bytes: Buffer): string[] {
  const found: string[] = []
  for (let at = 0; at < bytes.length; ) {
    let length = (bytes[at + 1] ?? 0) & 0x7f
    let body = at + 2
    if (length === 126) {
      length = bytes.readUInt16BE(body)
      body += 2
    } else if (length === 127) {
      length = Number(bytes.readBigUInt64BE(body))
      body += 8
    }
    const mask = bytes.subarray(body, body + 4)
    body += 4
    found.push(
      Buffer.from(bytes.subarray(body, body + length).map((byte, i) => byte ^ (mask[i % 4] ?? 0))).toString(),
    )
    at = body + length
  }
  return found
}

const upperCase = () => new ConnectFrame((message) => message.toUpperCase())

describe('the first message', () => {
  test('the first message is rewritten, and nothing after it', () => {
    const frames = upperCase()
    assert.deepEqual(texts(frames.push(frame('first €'))), ['FIRST €'])
    const second = frame('second')
    assert.equal(frames.push(second), second)
  })

  test('empty control frames take linear time, however many precede the first message', () => {
    const ping = frame('', { opcode: 9 })
    const pings = Buffer.concat(Array(200_000).fill(ping))
    const frames = upperCase()
    const start = performance.now()
    assert.ok(frames.push(Buffer.concat([pings, frame('he', { fin: false })])).equals(pings))
    // One copy for each of them would be 120 GB.
    assert.ok(performance.now() - start < 4000, `${performance.now() - start} ms`)
    const [passed, ...rest] = texts(frames.push(Buffer.concat([ping, frame('llo', { opcode: 0 })])))
    assert.deepEqual([passed, rest], ['', ['HELLO']])
  })

  test('an unchanged fragmented message passes verbatim, after its control frames', () => {
    const [first, ping, last, next] = [
      frame('he', { fin: false }),
      frame('ping', { opcode: 9 }),
      frame('llo', { opcode: 0 }),
      frame('next'),
    ]
    const frames = new ConnectFrame(() => undefined)
    const out: Buffer[] = []
    for (const byte of Buffer.concat([first, ping, last, next])) out.push(frames.push(Buffer.from([byte])))
    assert.ok(Buffer.concat(out).equals(Buffer.concat([ping, first, last, next])))
  })

  test('the first message is rewritten however its bytes are split or followed', () => {
    const bytes = Buffer.concat([frame('x'.repeat(300)), frame('next'), frame('', { opcode: 8 })])
    for (const size of [1, 2, 3, 7, 300, 1000]) {
      const frames = upperCase()
      const out: Buffer[] = []
      for (let at = 0; at < bytes.length; at += size) out.push(frames.push(bytes.subarray(at, at + size)))
      assert.deepEqual(texts(Buffer.concat(out)), ['X'.repeat(300), 'next', ''])
    }
  })

  test('the first message may be fragmented, with control frames in between, which pass', () => {
    const ping = frame('ping', { opcode: 9 })
    const bytes = Buffer.concat([
      ping,
      frame('a', { fin: false }),
      ping,
      frame('', { fin: false, opcode: 0 }),
      frame('b', { opcode: 0 }),
      frame('rest'),
    ])
    for (const size of [1, 5, 1000]) {
      const frames = upperCase()
      const out: Buffer[] = []
      for (let at = 0; at < bytes.length; at += size) out.push(frames.push(bytes.subarray(at, at + size)))
      assert.deepEqual(texts(Buffer.concat(out)), ['ping', 'ping', 'AB', 'rest'])
    }
  })

  test('the first message grows and shrinks across every form of its length', () => {
    for (const length of [0, 1, 125, 126, 127, 65_535, 65_536, 70_000]) {
      const frames = new ConnectFrame(() => 'y'.repeat(length))
      assert.deepEqual(texts(frames.push(frame('x'))), ['y'.repeat(length)])
    }
    assert.deepEqual(texts(upperCase().push(frame('x'.repeat(65_535)))), ['X'.repeat(65_535)])
  })

  test('the first message passes byte for byte if it is not rewritten', () => {
    const bytes = Buffer.concat([frame('a', { fin: false }), frame('b', { opcode: 0 }), frame('c')])
    const frames = new ConnectFrame(() => undefined)
    assert.deepEqual(frames.push(bytes), bytes)
  })

  const hostile: Record<string, Buffer> = {
    'no mask': frame('x', { masked: false }),
    'binary first': frame('x', { opcode: 2 }),
    'a continuation first': frame('x', { opcode: 0 }),
    'an unknown opcode': frame('x', { opcode: 5 }),
    'reserved bits': frame('x', { rsv: 0x40 }),
    'a length of 64 bits': frame(Buffer.alloc(70_000)),
    'a length beyond all': Buffer.from([
      0x81, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 2, 3, 4,
    ]),
    'a text within a text': Buffer.concat([frame('a', { fin: false }), frame('b')]),
    'endless parts': Buffer.concat([
      frame('', { fin: false }),
      ...Array.from({ length: 20_000 }, () => frame('', { fin: false, opcode: 0 })),
    ]),
    'large parts': Buffer.concat([
      frame('x'.repeat(60_000), { fin: false }),
      ...Array.from({ length: 4 }, () => frame('x'.repeat(60_000), { fin: false, opcode: 0 })),
    ]),
    'no WebSocket at all': Buffer.from('GET / HTTP/1.1\r\n\r\n'),
  }
  for (const [name, bytes] of Object.entries(hostile))
    test(`the first message passes unchanged: ${name}`, () => {
      for (const size of [1000, bytes.length]) {
        const frames = new ConnectFrame(() => assert.fail('rewritten'))
        const out: Buffer[] = []
        for (let at = 0; at < bytes.length; at += size) out.push(frames.push(bytes.subarray(at, at + size)))
        assert.ok(Buffer.concat(out).equals(bytes))
        const later = Buffer.from('later')
        assert.equal(frames.push(later), later)
      }
    })

  test('random bytes never throw, and none are lost', () => {
    for (let i = 0; i < 2000; i++) {
      const frames = new ConnectFrame(() => undefined)
      const bytes = randomBytes(1 + (i % 64))
      const out = Buffer.concat([frames.push(bytes.subarray(0, 5)), frames.push(bytes.subarray(5))])
      assert.ok(out.length <= bytes.length)
    }
  })
})

describe('connect requests', () => {
  const rewritten = (params: object) =>
    JSON.parse(
      rewriteConnect(JSON.stringify({ ...connect, params: { ...connect.params, ...params } }), 'mine') ?? '',
    ).params

  test("an old client's connect request becomes one that the gateway accepts", () => {
    assert.deepEqual(JSON.parse(rewriteConnect(JSON.stringify(connect), 'mine') ?? ''), {
      ...connect,
      params: { ...connect.params, maxProtocol: 4, auth: { token: 'mine' } },
    })
  })

  test('a connect request keeps its range of newer protocols', () => {
    const { minProtocol, maxProtocol } = rewritten({ minProtocol: 4, maxProtocol: 5 })
    assert.deepEqual([minProtocol, maxProtocol], [4, 5])
    assert.equal(rewritten({ maxProtocol: undefined }).maxProtocol, undefined)
  })

  test('a connect request always gets the token of the gateway', () => {
    for (const auth of [undefined, null, 'x', {}, { token: 'old' }, { password: 'p', deviceToken: 'd' }])
      assert.deepEqual(rewritten({ auth }).auth, { token: 'mine' })
  })

  test('a connect request without a device comes from a client that the gateway gives rights to', () => {
    const client = { id: 'webchat-ui', version: '2', platform: 'web', mode: 'webchat' }
    assert.deepEqual(rewritten({ client }).client, { ...client, id: 'gateway-client', mode: 'backend' })
    assert.deepEqual(rewritten({}).client, connect.params.client)
    assert.equal(rewritten({ client: 'x' }).client, 'x')
  })

  test('a connect request keeps a device only if it signed the right token', () => {
    const device = { id: 'd', signature: 's' }
    const client = { id: 'openclaw-ios', mode: 'ui' }
    const kept = rewritten({ device, client, auth: { token: 'mine' } })
    assert.deepEqual([kept.device, kept.client], [device, client])
    assert.equal('device' in rewritten({ device, auth: { token: 'old' } }), false)
    assert.equal('device' in rewritten({ device, auth: undefined }), false)
  })

  test("a browser's connect request keeps its client, so the gateway refuses unknown ones", () => {
    const client = { id: 'webchat-ui', mode: 'webchat' }
    const request = { ...connect, params: { ...connect.params, client } }
    const { params } = JSON.parse(rewriteConnect(JSON.stringify(request), 'mine', true) ?? '')
    assert.deepEqual([params.client, params.auth], [client, { token: 'mine' }])
  })

  test('a message that is not a connect request is left alone', () => {
    for (const message of [
      '',
      'null',
      '[]',
      '"connect"',
      '{',
      '{"type":"req","method":"connect"}',
      '{"type":"req","method":"connect","params":[]}',
      '{"type":"req","method":"cron.list","params":{}}',
      '{"type":"event","method":"connect","params":{}}',
    ])
      assert.equal(rewriteConnect(message, 'mine'), undefined, message)
  })
})
