/**
 * The audit of requests: who did what, and how it ended. One place for all routes: what is written about a request comes
 * from the declaration of its route, so that no route can forget it.
 */
import type { Request, RequestHandler, Response } from 'express'
import {
  type AuditCaller,
  type AuditEntry,
  type AuditRow,
  auditRow,
  UNKNOWN,
} from '../db/statements/audit.ts'
import { crashPoint } from '../lib/crash-point.ts'
import { clientAddress } from '../lib/net/ip-address.ts'
import { redactTokens } from '../log.ts'
import type { Principal } from './principal.ts'
import { WindowCounts } from './window-counts.ts'

/** The part of a route's declaration that the audit reads. */
interface AuditedRoute {
  audited?: false
  id: string
  method: string
  path: string
  success: { status: number }
}

/** Keeps entries. It is handed in, so that routing does not know where. */
export interface AuditSink {
  /** Resolves when the entry is in the database. An entry that is there and says `unknown` is completed. */
  write(row: AuditRow): Promise<void>
  /** The same, of an entry that says `unknown`; one that the database does not take is not written later. */
  begin(row: AuditRow): Promise<void>
}

/** The entry of a request, for a handler that writes it in the statement of its change: neither is there without the other. */
export interface EntryOfChange {
  /** The entry of a request that was done. @param made the id of what it makes. */
  of(made: string): AuditRow
  /** Called when it is written. */
  written(): void
}

const NOBODY: AuditCaller = { via: 'nobody', workspaceId: null, userId: null, keyId: null, agentId: null }
const MINUTE_MS = 60_000
/** Entries a minute about failed sign-ins, from one address and in one process: a flood must not fill the disk. */
const FAILURES_OF_ADDRESS = 10
const FAILURES = 120
/** Addresses that are counted apart among refusals without an entry; the others are one more. */
const MOST_ADDRESSES = 1000
const OTHERS = 'others'
const LOOPBACK = 'loopback'
const MAX_USER_AGENT = 160
/** The status of an answer that nobody waited for any more. */
const CLIENT_GONE = 499

/** True for a route whose requests are written down: every write, unless the route says otherwise. */
export const isAudited = ({ method, audited }: Pick<AuditedRoute, 'method' | 'audited'>): boolean =>
  audited !== false && !['get', 'head', 'options'].includes(method)

/** Names the caller of a request without a key, where the handler learns who that is. */
export function noteCaller(res: Response, caller: Partial<AuditCaller>): void {
  res.locals.auditCaller = { ...NOBODY, via: 'link', ...caller }
}

/**
 * Has the entry of a request written before it changes anything, where that is not done yet: for the handler of a route without
 * a key, when it knows the caller. Until it is known how the request ended, the entry says `unknown`.
 * @throws what the database said: then nothing may be changed.
 */
export const beginEntry = async (res: Response): Promise<void> => res.locals.beginEntry?.()

export class Audit {
  readonly #sink: AuditSink
  readonly #failures = new WindowCounts(MINUTE_MS)
  readonly #limited = new WindowCounts(MINUTE_MS)
  /** Refusals of this minute without an entry, by address. */
  #dropped = new Map<string, number>()

  constructor(sink: AuditSink) {
    this.#sink = sink
  }

  /**
   * Writes down that a request of a route begins, when {@link beginEntry} is called, and how it ends, before the end of its
   * answer leaves: there is no change without an entry, and who has seen an answer finds how it ended. Where that cannot be
   * written, an answer that has not begun becomes an error.
   */
  ofRoute(declared: AuditedRoute): RequestHandler {
    return (req, res, next) => {
      // Beyond this route they are others.
      const { params } = req
      const { end } = res
      let isWritten = false
      let begun: AuditRow | undefined
      let beginning: Promise<void> | undefined
      let ending: Promise<void> | undefined
      const begin = async () => {
        // The entry of a client that has gone is written already.
        if (isWritten) return ending
        begun = { ...rowOf(null, undefined), errorCode: UNKNOWN }
        await this.#sink.begin(begun)
      }
      res.locals.beginEntry = () => {
        const isBeyond = !beginning && callerOf(res).via === 'nobody' && !this.#hasRoom(req)
        if (!isBeyond) beginning ??= begin()
        return beginning
      }
      const write = (status: number): Promise<void> | undefined => {
        isWritten = true
        if (!begun && !this.#isWanted(req, res, callerOf(res), status)) return undefined
        ending = writeEnd(rowOf(status, res.locals.answer))
        return ending
      }
      const writeEnd = async (row: AuditRow) => {
        if (!begun) return this.#sink.write(row)
        // Never both in one statement.
        await beginning?.catch(() => {})
        crashPoint('audit-before-end')
        await this.#sink.write({ ...row, id: begun.id, createdAt: begun.createdAt })
      }
      const rowOf = (status: number | null, answer: unknown) =>
        auditRow({
          ...entryOf(req, res, callerOf(res), status),
          action: declared.id,
          method: declared.method.toUpperCase(),
          route: declared.path,
          resource: resourceOf(declared, params, answer),
        })
      const ofChange: EntryOfChange = {
        of: (id) => rowOf(declared.success.status, { id }),
        written() {
          isWritten = true
        },
      }
      res.locals.entry = ofChange
      const endWritten = (...given: unknown[]): Response => {
        res.end = end
        const writing = isWritten ? undefined : write(res.statusCode)
        const finish = () => Reflect.apply(end, res, given)
        if (!writing) return finish()
        writing.then(finish, (error) => {
          if (res.headersSent || res.statusCode >= 400) return finish()
          res.removeHeader('Content-Length')
          next(error)
        })
        return res
      }
      res.end = endWritten as typeof end
      res.once('close', () => {
        // The sink tells of its own troubles.
        if (!isWritten) write(CLIENT_GONE)?.catch(() => {})
      })
      next()
    }
  }

  /** Writes down that somebody exchanged a token for a cookie, or for an open connection. */
  async signIn(req: Request, res: Response, principal: Principal, resource: string): Promise<void> {
    res.locals.auditCaller = callerFrom(principal)
    await this.#sink.write(
      auditRow({ ...entryOf(req, res, res.locals.auditCaller, 200), ...SIGN_IN, resource }),
    )
  }

  /** Writes down that a credential was refused, within the bounds of a minute. The answer does not wait. */
  failedSignIn(req: Request, res: Response, code: string): void {
    res.locals.hasFailed = true
    if (!this.#hasRoom(req)) return
    const entry = { ...entryOf(req, res, NOBODY, 401), ...SIGN_IN, errorCode: code, resource: '' }
    this.#sink.write(auditRow(entry)).catch(() => {})
  }

  #isWanted(req: Request, res: Response, caller: AuditCaller, status: number): boolean {
    if (caller.via === 'nobody' && status >= 400) return !res.locals.hasFailed && this.#hasRoom(req)
    // The first request beyond a limit is written down, in each minute.
    return status !== 429 || this.#limited.add(caller.keyId ?? caller.agentId ?? '').count === 1
  }

  #hasRoom({ ip }: Request): boolean {
    const address = clientAddress(ip) ?? LOOPBACK
    const hasRoom =
      this.#failures.add(`address ${address}`).count <= FAILURES_OF_ADDRESS &&
      this.#failures.add('all').count <= FAILURES
    if (!hasRoom) this.#drop(address)
    return hasRoom
  }

  /** Has the refusals of a minute that got no entry written down as one. */
  #drop(address: string): void {
    if (this.#dropped.size === 0) setTimeout(() => this.#writeDropped(), MINUTE_MS).unref()
    const isKnown = this.#dropped.has(address) || this.#dropped.size < MOST_ADDRESSES
    const key = isKnown ? address : OTHERS
    this.#dropped.set(key, (this.#dropped.get(key) ?? 0) + 1)
  }

  #writeDropped(): void {
    const dropped = [...this.#dropped].sort(([, one], [, other]) => other - one)
    this.#dropped = new Map()
    const count = dropped.reduce((sum, [, one]) => sum + one, 0)
    const resource = `${count} from ${dropped.length} addresses`
    const address = dropped[0]?.[0] ?? null
    const more = { status: null, errorCode: 'not_listed', requestId: null, userAgent: null }
    // The sink logs its own failures.
    this.#sink.write(auditRow({ ...NOBODY, ...REFUSALS, ...more, resource, address })).catch(() => {})
  }
}

const SIGN_IN = { action: 'signIn', method: null, route: null }
/** One entry for all refusals of a minute beyond those that have their own; its address is the one with the most. */
const REFUSALS = { action: 'refusals', method: null, route: null }

function callerOf({ locals }: Response): AuditCaller {
  return locals.auditCaller ?? (locals.caller ? callerFrom(locals.caller) : NOBODY)
}

const callerFrom = ({ agent, isSession, keyId, workspaceId, userId }: Principal): AuditCaller => ({
  via: agent?.by ?? (isSession ? 'session' : 'key'),
  workspaceId,
  userId,
  keyId: agent ? null : keyId,
  agentId: agent?.agentId ?? null,
})

function entryOf(
  req: Request,
  res: Response,
  caller: AuditCaller,
  status: number | null,
): Omit<AuditEntry, 'action' | 'method' | 'route' | 'resource'> {
  const code = status !== null && status >= 400 ? String(res.getHeader('Error-Code') ?? status) : null
  return {
    ...caller,
    status,
    errorCode: status === CLIENT_GONE ? 'client_gone' : code,
    requestId: String(req.id ?? '') || null,
    address: req.ip ?? null,
    userAgent:
      redactTokens(req.get('user-agent') ?? '')
        .slice(0, MAX_USER_AGENT)
        .toWellFormed() || null,
  }
}

/** Parameters of paths that are secrets. */
const SECRETS = ['token']
/** The form of an id or a name; a client may have put anything else there by mistake. */
const NAME = /^[\w.:@~-]{1,64}$/

/**
 * The resource of a request: the path up to its last parameter, without a version and without secrets, or all of the path
 * where it has none. The id of a thing that a POST has made follows the whole path.
 */
export function resourceOf(
  { path, method }: Pick<AuditedRoute, 'path' | 'method'>,
  params: object,
  answer: unknown,
) {
  const values = new Map(Object.entries(params))
  const parts = path.split('/').filter((part) => part !== '' && !/^v\d$/.test(part))
  const named = parts.map((part) => (/^[:*]/.test(part) ? nameOf(part.slice(1), values) : part))
  const made = method === 'post' ? idOf(answer) : undefined
  if (made !== undefined && !named.includes(made)) return [...named, made].join('/')
  const last = parts.findLastIndex((part) => /^[:*]/.test(part))
  const shown = last === -1 ? named : named.slice(0, last + 1)
  return shown.filter((part) => part !== '').join('/')
}

function nameOf(parameter: string, values: Map<string, unknown>): string {
  if (SECRETS.includes(parameter)) return ''
  const value = [values.get(parameter) ?? ''].flat().join('/')
  return value.split('/').every((part) => NAME.test(part)) ? redactTokens(value) : '…'
}

/** The id in an answer, wherever the sort of resource has it. */
function idOf(answer: unknown): string | undefined {
  const body = (answer ?? {}) as Record<string, Record<string, unknown>>
  const ids = [body.data?.id, body.agent?.agentId, body.id, body.requestid, body.pinata_api_key]
  return ids.find((id): id is string & Record<string, unknown> => typeof id === 'string')
}
