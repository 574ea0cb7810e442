/**
 * A DNS server on loopback (RFC 1035) that returns what a test tells it: TXT, CNAME and A records, no such name for all
 * others, silence and failures. UDP, and TCP on the same port for responses that are too long for UDP.
 */
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Server } from 'node:net'

export interface DnsServer {
  /** `127.0.0.1:<port>`. */
  readonly address: string
  /** The names that were queried, in lower case, with the type: `TXT _service-verify.shop.example.test`. */
  readonly asked: string[]
  /**
   * Replaces the TXT records of a name; an empty list removes them. Each may be longer than the 255 bytes of one
   * string.
   */
  setTxt(name: string, ...values: string[]): void
  setCname(name: string, target: string): void
  setA(name: string, ...addresses: string[]): void
  /** Forgets every record, and responds normally. */
  clear(): void
  /** How it responds from now on: normally, after a delay, with SERVFAIL, or never. */
  behave(how: 'well' | 'broken' | 'silent' | { delayMs: number }): void
  close(): Promise<void>
}

const TYPES = { A: 1, CNAME: 5, TXT: 16 } as const
type Type = keyof typeof TYPES
const INTERNET = 1
const OK = 0
const SERVER_FAILURE = 2
const NO_SUCH_NAME = 3
const HEADER_BYTES = 12
const UDP_BYTES = 512
const TTL_SECONDS = 0
const TRUNCATED = 0x02

interface Answer {
  name: string
  type: Type
  data: Buffer
}

/** @param wanted its port; a free one unless given. */
export async function startDnsServer(wanted = 0): Promise<DnsServer> {
  const records = new Map<string, Answer[]>()
  const asked: string[] = []
  let behaviour: Parameters<DnsServer['behave']>[0] = 'well'
  const set = (type: Type, name: string, data: Buffer[]) => {
    const others = (records.get(key(name)) ?? []).filter((record) => record.type !== type)
    records.set(key(name), [...others, ...data.map((one) => ({ name: key(name), type, data: one }))])
  }

  /** Calls `reply` with the response, unless there should be none. */
  function answer(query: Buffer, limit: number, reply: (message: Buffer) => void): void {
    const question = readQuestion(query)
    if (!question || behaviour === 'silent') return
    const { name, type } = question
    asked.push(`${type ?? 'other'} ${name}`)
    const found = type ? follow(records, name, type) : []
    const isThere = (records.get(name) ?? []).length > 0
    const status = behaviour === 'broken' ? SERVER_FAILURE : isThere ? OK : NO_SUCH_NAME
    const message = writeMessage(query, question.end, status, status === OK ? found : [], limit)
    if (typeof behaviour === 'object') setTimeout(() => reply(message), behaviour.delayMs).unref()
    else reply(message)
  }

  const { udp, tcp, port } = await bind(wanted)
  udp.on('message', (query, from) => {
    answer(query, UDP_BYTES, (message) => udp.send(message, from.port, from.address, () => {}))
  })
  tcp.on('connection', (socket) => {
    let received = Buffer.alloc(0)
    socket.on('error', () => {})
    socket.on('data', (chunk) => {
      received = Buffer.concat([received, chunk])
      while (received.length >= 2 && received.length >= 2 + received.readUInt16BE()) {
        const end = 2 + received.readUInt16BE()
        answer(received.subarray(2, end), 65_535, (message) => {
          socket.write(Buffer.concat([uint16(message.length), message]))
        })
        received = received.subarray(end)
      }
    })
  })
  return {
    address: `127.0.0.1:${port}`,
    asked,
    setTxt: (name, ...values) => set('TXT', name, values.map(characterStrings)),
    setCname: (name, target) => set('CNAME', name, [encodeName(target)]),
    setA: (name, ...addresses) =>
      set(
        'A',
        name,
        addresses.map((address) => Buffer.from(address.split('.').map(Number))),
      ),
    clear() {
      records.clear()
      behaviour = 'well'
    },
    behave(how) {
      behaviour = how
    },
    async close() {
      udp.close()
      tcp.close()
      await Promise.all([once(udp, 'close'), once(tcp, 'close')])
    },
  }
}

/** Both protocols on one port: a client that gets a truncated response asks again by TCP. */
async function bind(wanted: number): Promise<{ udp: Socket; tcp: Server; port: number }> {
  for (;;) {
    const tcp = createServer().listen(wanted, '127.0.0.1')
    await once(tcp, 'listening')
    const { port } = tcp.address() as AddressInfo
    const udp = createSocket('udp4')
    udp.bind(port, '127.0.0.1')
    const isBound = await once(udp, 'listening').then(
      () => true,
      () => false,
    )
    if (isBound) return { udp, tcp, port }
    tcp.close()
    if (wanted) throw new Error(`another process has the UDP port ${wanted}`)
  }
}

const key = (name: string) => name.toLowerCase().replace(/\.$/, '')

/** The records of a name, through its CNAMEs as a resolver follows them. */
function follow(records: Map<string, Answer[]>, name: string, type: Type): Answer[] {
  const found: Answer[] = []
  let at = name
  // More aliases than any sane zone has: they may form a loop.
  for (let i = 0; i < 8; i++) {
    const here = records.get(at) ?? []
    found.push(...here.filter((record) => record.type === type))
    const alias = here.find((record) => record.type === 'CNAME')
    if (type === 'CNAME' || !alias) break
    found.push(alias)
    at = decodeName(alias.data, 0)?.name ?? ''
  }
  return found
}

function readQuestion(query: Buffer): { name: string; type: Type | undefined; end: number } | undefined {
  if (query.length < HEADER_BYTES || query.readUInt16BE(4) !== 1) return undefined
  const read = decodeName(query, HEADER_BYTES)
  if (!read || read.end + 4 > query.length) return undefined
  const asked = query.readUInt16BE(read.end)
  const type = (Object.keys(TYPES) as Type[]).find((known) => TYPES[known] === asked)
  return { name: read.name, type, end: read.end + 4 }
}

/** A response to `query`, whose question ends at `questionEnd`. EDNS, which follows the question, is left out. */
function writeMessage(
  query: Buffer,
  questionEnd: number,
  status: number,
  answers: Answer[],
  limit: number,
): Buffer {
  const body = answers.map(({ name, type, data }) =>
    Buffer.concat([
      encodeName(name),
      uint16(TYPES[type]),
      uint16(INTERNET),
      Buffer.from([0, 0, 0, TTL_SECONDS]),
      uint16(data.length),
      data,
    ]),
  )
  const isTooLong = questionEnd + body.reduce((sum, { length }) => sum + length, 0) > limit
  const sent = isTooLong ? [] : body
  const header = Buffer.alloc(HEADER_BYTES)
  query.copy(header, 0, 0, 2)
  // An authoritative response; recursion as requested, and available.
  header[2] = 0x84 | ((query[2] ?? 0) & 0x01) | (isTooLong ? TRUNCATED : 0)
  header[3] = 0x80 | status
  header.writeUInt16BE(1, 4)
  header.writeUInt16BE(sent.length, 6)
  return Buffer.concat([header, query.subarray(HEADER_BYTES, questionEnd), ...sent])
}

/** A name without compression: neither questions nor our own records use it. */
function decodeName(message: Buffer, start: number): { name: string; end: number } | undefined {
  const labels: string[] = []
  let at = start
  for (;;) {
    const length = message[at]
    if (length === undefined || length > 63) return undefined
    if (length === 0) return { name: key(labels.join('.')), end: at + 1 }
    labels.push(message.toString('latin1', at + 1, at + 1 + length))
    at += 1 + length
  }
}

function encodeName(name: string): Buffer {
  const labels = key(name).split('.').filter(Boolean)
  return Buffer.concat([
    ...labels.flatMap((label) => [Buffer.from([label.length]), Buffer.from(label, 'latin1')]),
    Buffer.from([0]),
  ])
}

/** A TXT record's text, in strings of at most 255 bytes. */
function characterStrings(text: string): Buffer {
  const bytes = Buffer.from(text)
  const parts: Buffer[] = []
  for (let at = 0; at < bytes.length || at === 0; at += 255) {
    const part = bytes.subarray(at, at + 255)
    parts.push(Buffer.from([part.length]), part)
  }
  return Buffer.concat(parts)
}

function uint16(value: number): Buffer {
  const bytes = Buffer.alloc(2)
  bytes.writeUInt16BE(value)
  return bytes
}
