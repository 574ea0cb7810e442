/** A model gateway in front of a model that the test plays, with a control plane that keeps one budget in memory. */
import { createHash } from 'node:crypto'
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { join } from 'node:path'
import { json } from 'node:stream/consumers'
import type { TestContext } from 'node:test'
import { Registry } from 'prom-client'
import { ControlClient } from '../../src/agent-proxy/model/control-client.ts'
import { ModelGateway } from '../../src/agent-proxy/model/gateway.ts'
import { Journal } from '../../src/agent-proxy/model/journal.ts'
import { Ledger } from '../../src/agent-proxy/model/ledger.ts'
import {
  type GrantAnswer,
  type GrantRequest,
  MODEL_CONTROL,
  type Refusal,
  type Session,
  type SessionAnswer,
  type SessionRequest,
  type SyncAnswer,
  type SyncRequest,
  type UsageRecord,
} from '../../src/agent-proxy/model/protocol.ts'
import { Upstream } from '../../src/agent-proxy/model/upstream.ts'
import { createLogger } from '../../src/log.ts'
import type { Dialect } from '../../src/model-providers.ts'
import { serveHttp, startProxy } from './egress.ts'
import { useFolder } from './folder.ts'
import { until } from './processes.ts'

export const VIRTUAL_KEY = 'virtual-key'
export const REAL_KEY = 'real-key'
const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')
/** 1 µ$ per input token, 2 µ$ per output token. */
export const PRICE = { input: 1e6, output: 2e6 }

/** The control plane: what a test changes while the gateway runs, and what the gateway has reported. */
export class FakeControl {
  session: Session
  /** Picodollars that are left. */
  left = Number.MAX_SAFE_INTEGER
  grants = 0
  /** How many more grants it refuses because others hold the rest of the budget, and are returning it. */
  recalls = 0
  readonly records: UsageRecord[] = []
  /** While set, every call gets this status. */
  failure: number | undefined
  isKnown = true
  readonly #leases = new Map<string, { usd: number; seq: number }>()

  constructor(session: Session) {
    this.session = session
  }

  readonly listener: RequestListener = async (req, res) => {
    if (this.failure || req.headers.authorization !== 'Bearer control-key')
      return void res.writeHead(this.failure ?? 401).end()
    const body = await json(req)
    const answers: Record<string, () => object> = {
      [MODEL_CONTROL.session]: () => this.#session(body as SessionRequest),
      [MODEL_CONTROL.grant]: () => this.#grant(body as GrantRequest),
      [MODEL_CONTROL.sync]: () => this.#sync(body as SyncRequest),
    }
    res.end(JSON.stringify(answers[req.url ?? '']?.()))
  }

  #session({ key }: SessionRequest): SessionAnswer {
    if (this.isKnown && key === sha256(VIRTUAL_KEY)) return { session: this.session }
    return { refusal: { status: 401, code: 'unknown_key', message: 'Nobody has this key' } }
  }

  #grant({ need }: GrantRequest): GrantAnswer {
    this.grants++
    if (this.recalls-- > 0) return { refusal: { status: 503, code: 'unavailable', message: 'Recalled' } }
    if (need.usd > this.left) return { refusal: SPENT }
    // Without a limit, one lease is enough for a test.
    const usd = this.left === Number.MAX_SAFE_INTEGER ? 1e15 : need.usd
    this.left -= usd
    const id = crypto.randomUUID()
    this.#leases.set(id, { usd, seq: 0 })
    return {
      lease: { id, ...need, usd, tokens: 1e12, requests: 10_000, requestsForMs: 60_000, endsInMs: 3_600_000 },
    }
  }

  #sync({ leases, keys }: SyncRequest): SyncAnswer {
    for (const { id, seq, records, done } of leases) {
      const lease = this.#leases.get(id)
      if (!lease || seq <= lease.seq) continue
      lease.seq = seq
      this.records.push(...records)
      for (const { usd } of records) lease.usd -= usd
      if (done) this.left += lease.usd
    }
    const known = this.isKnown ? keys.filter((key) => key === sha256(VIRTUAL_KEY)) : []
    return { sessions: Object.fromEntries(known.map((key) => [key, this.session])), ended: [] }
  }

  /** The nth record. */
  async record(n = 0): Promise<UsageRecord> {
    await until('a record of usage', () => this.records.length > n)
    return this.records[n] as UsageRecord
  }
}

export const SPENT: Refusal = {
  status: 429,
  code: 'budget_exceeded',
  message: 'Budget spent: $5.00 per month. Resets at 2026-12-01.',
}

export interface ModelRequest {
  req: IncomingMessage
  body: string
}

/**
 * Starts everything, with a provider `berth` of the dialect that has the model `m`.
 * @param answer plays the model server.
 */
export async function startModelGateway(
  t: TestContext,
  answer: (res: ServerResponse, request: ModelRequest) => unknown,
  {
    dialect = 'openai',
    quietMs,
    silentMs,
    downMs,
    ...changes
  }: { dialect?: Dialect; quietMs?: number; silentMs?: number; downMs?: number } & Partial<Session> = {},
) {
  const requests: ModelRequest[] = []
  const model = await serveHttp(t, async (req, res) => {
    const chunks: Buffer[] = []
    for await (const chunk of req) chunks.push(chunk)
    const request = { req, body: Buffer.concat(chunks).toString() }
    requests.push(request)
    await answer(res, request)
  })
  const baseUrl = `http://127.0.0.1:${model}${dialect === 'openai' ? '/v1' : ''}`
  const control = new FakeControl({
    agentId: 'agent',
    credential: null,
    providers: [{ id: 'berth', dialect, baseUrl, key: REAL_KEY }],
    prices: { 'berth/m': PRICE },
    limits: { usd: true, tokens: false, requests: false },
    refusal: null,
    ...changes,
  })
  const web = await serveHttp(t, control.listener)
  const registry = new Registry()
  const log = createLogger('test', 'debug', { write: () => {} })
  const client = new ControlClient({ url: `http://127.0.0.1:${web}`, key: 'control-key' })
  const journal = new Journal(join(await useFolder('berth-model-', t), 'models.jsonl'), log)
  const ledger = new Ledger({ control: client, log, journal })
  const upstream = new Upstream({ allowed: [], ...(silentMs && { silentMs }), ...(downMs && { downMs }) })
  const gateway = new ModelGateway({ ledger, upstream, log, registry, ...(quietMs && { quietMs }) })
  const proxy = await startProxy(t, [], { gateway })
  t.after(async () => {
    upstream.close()
    await ledger.close()
    client.close()
  })
  const url = `http://127.0.0.1:${proxy.port}`
  const post = (path: string, body: unknown, init: RequestInit = {}) =>
    fetch(`${url}${path}`, {
      method: 'POST',
      body: typeof body === 'string' ? body : JSON.stringify(body),
      ...init,
      headers: { authorization: `Bearer ${VIRTUAL_KEY}`, ...init.headers },
    })
  return { url, port: proxy.port, model: `http://127.0.0.1:${model}`, post, control, requests }
}
