/**
 * `GET /?domain=<name>`: a TLS proxy in front asks before it gets a certificate for a name that someone connected to.
 * It returns 200 for names that Berth currently serves, and 404 for all others. Anyone can make a proxy ask for any
 * name, so questions are bounded. It is a separate listener, which must not be published: it reveals which names exist.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { isIP } from 'node:net'
import type { Config } from '../config.ts'
import type { Pool } from '../db/pool.ts'
import {
  findAgentName,
  findAgentPages,
  findContentName,
  findCustomDomain,
  findGatewayName,
  findSubdomain,
} from '../db/statements/domains.ts'
import { canonicalCid, parseCid } from '../files/cid.ts'
import { LABEL_LENGTH, readGatewayHost } from '../files/gateway-domain.ts'
import { WindowCounts } from '../http/window-counts.ts'
import { AGENT_ID } from '../lib/agent-id.ts'
import type { Bounds } from '../lib/bounds.ts'
import { bind } from '../lib/net/bind.ts'
import { orAborted, withDeadline } from '../lib/signals.ts'
import type { Logger } from '../log.ts'
import { nearestDomain } from './hosts.ts'

/** How long a result is cached. */
const CACHE_MS = 2000
const CACHE_SIZE = 10_000
/**
 * Queries per second in one process for each kind of name: a flood of made-up domains takes nothing from gateways and
 * agents.
 */
const QUERIES_PER_SECOND = 100
/** A handshake waits for the result. */
const ANSWER_MS = 1500

const OK = 200
const NOT_FOUND = 404
const TOO_MANY = 429
const UNAVAILABLE = 503
export type Verdict = typeof OK | typeof NOT_FOUND | typeof TOO_MANY | typeof UNAVAILABLE

/** Decides whether names are served, as HTTP statuses. */
export class ServedNames {
  readonly #pool: Pick<Pool, 'query'>
  readonly #config: OwnNames
  readonly #log: Logger
  readonly #queries = new WindowCounts(1000)
  readonly #cache = new Map<string, { verdict: Promise<Verdict>; until: number }>()
  readonly #bounds: Bounds

  constructor(options: { pool: Pick<Pool, 'query'>; bounds: Bounds; config: OwnNames; log: Logger }) {
    const { pool, bounds, config, log } = options
    this.#pool = pool
    this.#bounds = bounds
    this.#config = config
    this.#log = log
  }

  /** @returns 200 or 404; 429 above the limit of queries; 503 if the database does not respond within 1.5 s. */
  async ask(host: string): Promise<Verdict> {
    const question = askWhetherServed(host, this.#config)
    if (typeof question === 'boolean') return question ? OK : NOT_FOUND
    const key = JSON.stringify([question.name, question.values])
    const known = this.#cache.get(key)
    if (known && known.until > performance.now()) return known.verdict
    const verdict = this.#query(question)
    if (this.#cache.size >= CACHE_SIZE) this.#cache.clear()
    this.#cache.set(key, { verdict, until: performance.now() + CACHE_MS })
    // A refusal says nothing about the name, so it is not cached.
    if ((await verdict) >= TOO_MANY) this.#cache.delete(key)
    return verdict
  }

  async #query(question: Question): Promise<Verdict> {
    if (this.#queries.add(question.name).count > QUERIES_PER_SECOND) return TOO_MANY
    const late = () => new Error(`no answer within ${ANSWER_MS} ms`)
    const answer = this.#bounds.run('nameLookups', {}, () => this.#pool.query(question))
    try {
      const { rowCount } = await withDeadline({ ms: ANSWER_MS, late }, (signal) => orAborted(answer, signal))
      return rowCount ? OK : NOT_FOUND
    } catch (error) {
      this.#log.warn({ err: error }, 'cannot determine whether a name is served')
      return UNAVAILABLE
    }
  }
}

/**
 * Listens on BERTH_TLS_ASK.
 * @returns a function that closes the listener.
 * @throws ConfigError if it cannot listen there.
 */
export async function openAskPort(
  { BERTH_TLS_ASK: address }: Config,
  names: ServedNames,
  log: Logger,
): Promise<() => void> {
  if (!address) return () => {}
  const answer = async ({ method, url = '' }: IncomingMessage, res: ServerResponse) => {
    const query = /^\/\?(.*)$/.exec(url)?.[1]
    const domain = new URLSearchParams(query).getAll('domain')
    const isQuestion = method === 'GET' && domain.length === 1
    res.statusCode = isQuestion ? await names.ask(domain[0] ?? '') : NOT_FOUND
    if (res.statusCode === TOO_MANY) res.setHeader('Retry-After', '1')
    res.end()
  }
  const server = createServer({ requestTimeout: 10_000 }, (req, res) => {
    req.resume()
    answer(req, res).catch((error) => {
      log.error({ err: error }, 'the TLS ask port failed')
      res.destroy()
    })
  })
  const settings = { host: 'BERTH_TLS_ASK', port: 'BERTH_TLS_ASK' }
  const port = await bind(server, { ...address, settings })
  log.info({ ...address, port }, 'the TLS ask port listens')
  return () => {
    server.close()
    server.closeAllConnections()
  }
}

type OwnNames = Pick<
  Config,
  'PUBLIC_URL' | 'BERTH_GATEWAY_DOMAIN' | 'BERTH_AGENT_DOMAIN' | 'BERTH_APP_DOMAIN'
>

/** A query that finds a row if the name is served. */
interface Question {
  name: string
  text: string
  values: string[]
}

/** A DNS name, with other scripts in punycode, of two labels or more; the last one is not a number. */
const NAME = /^(?=.{1,253}$)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]([a-z0-9-]{0,61}[a-z0-9])?$/

/**
 * How to determine whether Berth serves a name.
 * @param host as in a TLS handshake: in any case, with or without a trailing dot.
 * @returns true or false if that is known without a query.
 */
export function askWhetherServed(host: string, config: OwnNames): Question | boolean {
  const { BERTH_GATEWAY_DOMAIN, BERTH_AGENT_DOMAIN, BERTH_APP_DOMAIN } = config
  const name = host.toLowerCase().replace(/\.$/, '')
  if (!NAME.test(name) || isIP(name)) return false
  if (config.PUBLIC_URL && name === new URL(config.PUBLIC_URL).hostname) return true
  // The API's host for agents.
  if (name === BERTH_AGENT_DOMAIN) return true
  const domain = nearestDomain(name, [BERTH_GATEWAY_DOMAIN, BERTH_AGENT_DOMAIN, BERTH_APP_DOMAIN])
  const label = name.slice(0, -(domain?.length ?? 0) - 1)
  if (domain === undefined) return question(findCustomDomain, name)
  if (domain === BERTH_GATEWAY_DOMAIN) return gateway(name, domain)
  if (domain === BERTH_AGENT_DOMAIN) return AGENT_ID.test(label) && question(findAgentName, label)
  return !label.includes('.') && question(AGENT_ID.test(label) ? findAgentPages : findSubdomain, label)
}

function gateway(name: string, gatewayDomain: string): Question | boolean {
  const named = readGatewayHost(name, gatewayDomain)
  if (!named) return false
  const { domain, cid } = named
  if (cid === undefined) return question(findGatewayName, domain)
  const canonical = cid.length > LABEL_LENGTH ? undefined : canonicalOrNone(cid)
  return canonical === undefined ? false : question(findContentName, domain, canonical)
}

const question = (
  { definition: { name, text } }: { definition: Pick<Question, 'name' | 'text'> },
  ...values: string[]
): Question => ({ name, text, values })

function canonicalOrNone(cid: string): string | undefined {
  try {
    return canonicalCid(parseCid(cid))
  } catch {
    return undefined
  }
}
