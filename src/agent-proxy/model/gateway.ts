/**
 * The model gateway: the agents' only way to a model. It knows an agent by its virtual key, reserves what a request may
 * cost, inserts the provider's real key, and charges what the response used.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import { readEach } from '../../lib/read.ts'
import type { Logger } from '../../log.ts'
import { type Dialect, gatewayPath } from '../../model-providers.ts'
import { passwordHash, sha256 } from '../credential.ts'
import { uncountable } from './countable.ts'
import { Exchange } from './exchange.ts'
import { type JsonBody, readJsonBody, withValues } from './json-body.ts'
import type { KnownSession, Ledger } from './ledger.ts'
import { type HeldBody, Memory } from './memory.ts'
import { type Call, dialectOf, forwardedQuery, PATHS, readCall } from './paths.ts'
import { type Provider, priceOf, type Session } from './protocol.ts'
import { answerRefusal, FAILED, RefusalError, refused } from './refusal.ts'
import { type Asked, needOf } from './reserve.ts'
import type { Upstream } from './upstream.ts'

const LIMITS = {
  bodyBytes: 32 * 1024 * 1024,
  headerBytes: 16 * 1024,
  /** How long a connection may wait for its next request. */
  keepAliveMs: 30_000,
  idleMs: 1_200_000,
  /** How long a refused request may still send. */
  lingerMs: 10_000,
  /** Maximum silence of a stream towards the agent, whose engine gives up after 120 s. */
  quietMs: 15_000,
}
/** Headers of requests that model servers get. */
const FORWARDED = [
  'accept',
  'user-agent',
  'anthropic-version',
  'anthropic-beta',
  'openai-beta',
  'x-goog-api-client',
]
const PICODOLLARS = 1e12

export interface GatewayOptions {
  ledger: Ledger
  upstream: Upstream
  log: Logger
  registry: Registry
  memory?: Memory
  quietMs?: number
}

/** A request as the proxy in front of the gateway received it. */
export interface Arrival {
  /** Path and query. */
  path: string
  /** `Proxy-Authorization` of the request, or of the tunnel through which it came. */
  proxyAuthorization: string | undefined
}

export class ModelGateway {
  readonly #options: GatewayOptions
  readonly #memory: Memory
  readonly #tunnels: Server
  readonly #credentials = new WeakMap<Socket, string | undefined>()
  readonly #outcomes: Counter<'outcome'>
  readonly #reserved: Counter
  readonly #settled: Counter
  readonly #overhead: Histogram
  readonly #streams = new Set<Exchange>()
  #open = 0

  constructor(options: GatewayOptions) {
    this.#options = options
    const { quietMs = LIMITS.quietMs } = options
    // A timer for each stream would cost more than one of its events.
    setInterval(() => {
      for (const stream of this.#streams) stream.breakSilence(quietMs)
    }, quietMs / 4).unref()
    this.#memory = options.memory ?? new Memory()
    this.#tunnels = createServer({
      maxHeaderSize: LIMITS.headerBytes,
      keepAliveTimeout: LIMITS.keepAliveMs,
    })
    this.#tunnels.timeout = LIMITS.idleMs
    this.#tunnels.on('request', (req, res) => {
      const proxyAuthorization = this.#credentials.get(req.socket)
      void this.handle(req, res, { path: req.url ?? '', proxyAuthorization })
    })
    const registers = [options.registry]
    this.#outcomes = new Counter({
      name: 'berth_model_requests_total',
      help: 'Requests to the model gateway, by outcome: the status of the response, or the code of the refusal.',
      labelNames: ['outcome'],
      registers,
    })
    this.#reserved = new Counter({
      name: 'berth_model_reserved_dollars_total',
      help: 'US dollars that requests to models have reserved.',
      registers,
    })
    this.#settled = new Counter({
      name: 'berth_model_settled_dollars_total',
      help: 'US dollars that requests to models have cost.',
      registers,
    })
    this.#overhead = new Histogram({
      name: 'berth_model_overhead_seconds',
      help: 'Time from the end of a request to a model until it is forwarded.',
      buckets: [0.0005, 0.001, 0.002, 0.005, 0.01, 0.05, 0.25, 1],
      registers,
    })
    const open = () => this.#open
    new Gauge({
      name: 'berth_model_open',
      help: 'Open requests to models.',
      registers,
      collect() {
        this.set(open())
      },
    })
  }

  /** Serves a connection that asked for a tunnel to the gateway; resolves when it is closed. */
  serve(socket: Socket, head: Buffer, proxyAuthorization: string | undefined): Promise<void> {
    this.#credentials.set(socket, proxyAuthorization)
    if (head.length > 0) socket.unshift(head)
    return new Promise((resolve) => {
      socket.once('close', () => resolve())
      if (socket.destroyed) resolve()
      this.#tunnels.emit('connection', socket)
    })
  }

  /** Handles a request until it ends. Never rejects. */
  async handle(req: IncomingMessage, res: ServerResponse, arrival: Arrival): Promise<void> {
    const began = performance.now()
    const [path = '', query] = arrival.path.split('?', 2)
    let dialect = dialectOf(path)
    let outcome = 'passed'
    this.#open++
    try {
      const call = readCall(req.method ?? '', path)
      if (!call) throw refused(404, 'not_found', `The model gateway serves only: ${PATHS.join(', ')}`)
      const search = new URLSearchParams(query)
      const known = await this.#authenticate(req, search, arrival.proxyAuthorization)
      const provider = findProvider(known.session, call)
      dialect = provider.dialect
      if (known.session.refusal) throw new RefusalError(known.session.refusal)
      if (call.operation === 'models') sendModels(res, known.session, provider)
      else outcome = await this.#forward(req, res, { call, known, provider, query: search, began })
    } catch (error) {
      if (!(error instanceof RefusalError) && !req.destroyed)
        this.#options.log.error({ err: error }, 'the model gateway failed')
      const refusal = error instanceof RefusalError ? error.refusal : FAILED
      outcome = refusal.code
      if (!res.headersSent && !res.destroyed) answerRefusal(res, dialect, refusal)
      else res.destroy()
      discardRest(req)
    } finally {
      this.#open--
      this.#outcomes.inc({ outcome })
      const ms = Math.round(performance.now() - began)
      // Queries and headers carry keys, and bodies belong to the agent.
      this.#options.log.debug({ outcome, ms }, 'model request')
    }
  }

  /** @throws RefusalError 401, or 503 if `web` does not answer. */
  async #authenticate(
    { headers }: IncomingMessage,
    query: URLSearchParams,
    proxyAuthorization: string | undefined,
  ): Promise<KnownSession> {
    const bearer = /^Bearer +(\S+)$/i.exec(headers.authorization ?? '')?.[1]
    const key = bearer ?? headers['x-api-key'] ?? headers['x-goog-api-key'] ?? query.get('key')
    if (typeof key !== 'string' || key === '')
      throw refused(401, 'unknown_key', 'The model gateway takes the virtual key of an agent as API key')
    const known = await this.#options.ledger.session(sha256(key))
    const { credential } = known.session
    if (credential !== null && credential !== passwordHash(proxyAuthorization))
      throw refused(401, 'unknown_key', "The virtual key is valid only through its agent's own proxy URL")
    return known
  }

  /** @returns the status of the response. */
  async #forward(req: IncomingMessage, res: ServerResponse, request: Accepted): Promise<string> {
    const { call, known, provider, query, began } = request
    using held = this.#memory.open(known.key)
    const body = readJsonBody(await readBody(req, held))
    const arrived = performance.now()
    const { session } = known
    const asked: Asked = {
      dialect: provider.dialect,
      operation: call.operation,
      body: body.value,
      bytes: body.bytes.length,
    }
    const why = uncountable(asked, session.limits)
    if (why)
      throw refused(400, 'uncountable', `A budget limits this call, and Berth cannot count what ${why} costs`)
    const model = call.model ?? body.value.model
    if (typeof model !== 'string' || model === '' || model.length > 256)
      throw refused(400, 'invalid_request', 'The body names no model')
    const addsUsage = call.operation === 'chat' && body.value.stream === true && !asksForUsage(body.value)
    const isFree = call.operation === 'count'
    const targets = targetsOf(session, provider, model, isFree).map(({ one, name, price }) => ({
      provider: one,
      model: name,
      price,
      path: call.upstreamPath(name) + forwardedQuery(query),
      body: changed(body, { ...(call.model === undefined && name !== model && { model: name }) }, addsUsage),
    }))
    const need = needOf(
      asked,
      targets.flatMap(({ price }) => price ?? []),
    )
    const reservation = await this.#options.ledger.reserve(known, need.amounts)
    const overheadMs = performance.now() - arrived
    const isStream =
      provider.dialect === 'google'
        ? call.isOfStreams && query.get('alt') === 'sse'
        : body.value.stream === true
    const exchange = new Exchange({
      upstream: this.#options.upstream,
      memory: this.#memory,
      log: this.#options.log,
      res,
      known,
      dialect: provider.dialect,
      isResponses: call.operation === 'responses',
      isStream,
      addsUsage,
      isFree,
      headers: forwardedHeaders(req),
      targets,
      session: sessionOf(req),
      need,
      reservation,
      began,
    })
    if (isStream) this.#streams.add(exchange)
    const ended = await exchange.run()
    this.#streams.delete(exchange)
    this.#overhead.observe(overheadMs / 1000)
    this.#reserved.inc(need.amounts.usd / PICODOLLARS)
    this.#settled.inc(ended.usd / PICODOLLARS)
    return `${ended.status}`
  }
}

interface Accepted {
  call: Call
  known: KnownSession
  provider: Provider
  query: URLSearchParams
  began: number
}

/** @throws RefusalError 404 */
function findProvider({ providers }: Session, call: Call): Provider {
  const provider = providers.find(({ id }) => id === call.provider)
  const bases = providers.map((one) => gatewayPath(one)).join(', ')
  if (!provider)
    throw refused(
      404,
      'not_found',
      `This agent has no such model provider. Base paths of its providers: ${bases}`,
    )
  if (!call.dialects.includes(provider.dialect))
    throw refused(404, 'not_found', `This path is not one of ${provider.id}. Paths: ${PATHS.join(', ')}`)
  return provider
}

/**
 * The provider and its fallbacks, each with its name and price of the model.
 * @throws RefusalError 400 if a budget in US dollars limits the agent, and the provider's model has no price.
 */
function targetsOf(session: Session, provider: Provider, model: string, isFree: boolean) {
  const fallbacks = (provider.fallbacks ?? [])
    .flatMap((id) => session.providers.find((one) => one.id === id) ?? [])
    .filter(({ dialect, models }) => dialect === provider.dialect && ownValue(models, model) !== undefined)
  const all = [provider, ...fallbacks].map((one) => {
    const name = ownValue(one.models, model) ?? model
    return { one, name, price: priceOf(session.prices, one.id, name) }
  })
  if (!session.limits.usd || isFree) return all
  const [first] = all
  if (first && !first.price) {
    const { id } = first.one
    const text = `A budget in US dollars limits this call, and Berth knows no price of ${id}/${first.name}.`
    const path = `/v0/admin/model/prices/${id}/${encodeURIComponent(first.name)}`
    throw refused(400, 'unknown_price', `${text} The operator can set it with PUT ${path}.`)
  }
  return all.filter(({ price }) => price)
}

function ownValue<Value>(record: Record<string, Value> | undefined, key: string): Value | undefined {
  return record && Object.hasOwn(record, key) ? record[key] : undefined
}

/** @throws RefusalError 413, or 503 if there is no memory for it. */
async function readBody(req: IncomingMessage, held: HeldBody): Promise<Buffer> {
  const tooLarge = () => refused(413, 'too_large', `The body is larger than ${LIMITS.bodyBytes} bytes`)
  if (Number(req.headers['content-length'] ?? 0) > LIMITS.bodyBytes) throw tooLarge()
  let size = 0
  await readEach(req, (chunk) => {
    size += chunk.length
    if (size > LIMITS.bodyBytes) throw tooLarge()
    if (!held.take(chunk.length)) throw refused(503, 'unavailable', 'Too many large requests at once', 2)
    held.chunks.push(chunk)
  })
  const [first, ...rest] = held.chunks.splice(0)
  return first && rest.length === 0 ? first : Buffer.concat(first ? [first, ...rest] : [])
}

/** Reads the rest of a refused request: if its connection were closed now, the client might miss the refusal. */
function discardRest(req: IncomingMessage): void {
  if (req.complete || req.destroyed) return
  const cut = setTimeout(() => req.destroy(), LIMITS.lingerMs)
  req.once('close', () => clearTimeout(cut))
  req.resume()
}

function changed(body: JsonBody, values: Record<string, unknown>, addsUsage: boolean): Buffer {
  const options = body.value.stream_options
  const isObject = typeof options === 'object' && options !== null
  const streamOptions = { ...(isObject && options), include_usage: true }
  const all = { ...values, ...(addsUsage && { stream_options: streamOptions }) }
  return Object.keys(all).length > 0 ? withValues(body, all) : body.bytes
}

function asksForUsage(body: Record<string, unknown>): boolean {
  const { include_usage: asks } = (body.stream_options ?? {}) as { include_usage?: unknown }
  return asks === true
}

/** Names and values in turn. */
function forwardedHeaders({ headers }: IncomingMessage): string[] {
  const passed = FORWARDED.flatMap((name) => (headers[name] === undefined ? [] : [name, `${headers[name]}`]))
  return [...passed, 'content-type', 'application/json']
}

/** The conversation or task, as the agent reports it. */
function sessionOf({ headers }: IncomingMessage): string {
  const said = headers['x-session-affinity'] ?? headers.session_id ?? ''
  return `${said}`.replaceAll(/[^\w:./@-]/g, '').slice(0, 64)
}

/** Answers the models that have a price or a name of their own, without asking the provider. */
function sendModels(res: ServerResponse, session: Session, { id, dialect, models = {} }: Provider): void {
  const priced = Object.keys(session.prices).flatMap((key) =>
    key.startsWith(`${id}/`) ? key.slice(id.length + 1) : [],
  )
  const names = [...new Set([...Object.keys(models), ...priced.filter((name) => name !== '*')])].sort()
  const lists: Record<Dialect, () => object> = {
    openai: () => ({
      object: 'list',
      data: names.map((name) => ({ id: name, object: 'model', created: 0, owned_by: id })),
    }),
    anthropic: () => ({
      data: names.map((name) => ({
        type: 'model',
        id: name,
        display_name: name,
        created_at: '1970-01-01T00:00:00Z',
      })),
      has_more: false,
      first_id: names[0] ?? null,
      last_id: names.at(-1) ?? null,
    }),
    google: () => ({ models: names.map((name) => ({ name: `models/${name}`, displayName: name })) }),
  }
  const body = JSON.stringify(lists[dialect]())
  res.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) })
  res.end(body)
}
