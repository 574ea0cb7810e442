/**
 * The audit of requests: who did what, and the outcome. It is in one place for all routes: a request's entry is derived
 * from the declaration of its route, so no route can forget it.
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

/** Stores entries. It is passed in, so that routing does not know where they are stored. */
export interface AuditSink {
  /** Resolves when the entry is in the database. An existing entry that is `unknown` is completed. */
  write(row: AuditRow): Promise<void>
  /** The same for an entry that is `unknown`; if the database rejects it, it is not written later. */
  begin(row: AuditRow): Promise<void>
}

/**
 * The entry of a request, for a handler that writes it in the statement of its change: either both exist or neither.
 */
export interface EntryOfChange {
  /** The entry of a successful request. @param made the id of what it creates. */
  of(made: string): AuditRow
  /** Called when it is written. */
  written(): void
}

const NOBODY: AuditCaller = { via: 'nobody', workspaceId: null, userId: null, keyId: null, agentId: null }
const MINUTE_MS = 60_000
/** Entries per minute about failed sign-ins, from one address and in one process: a flood must not fill the disk. */
const FAILURES_OF_ADDRESS = 10
const FAILURES = 120
/** Addresses that are counted separately among refusals without an entry; all others count as one more. */
const MAX_ADDRESSES = 1000
const OTHERS = 'others'
const LOOPBACK = 'loopback'
const MAX_USER_AGENT = 160
/** The status of a response that no client was waiting for. */
const CLIENT_GONE = 499

/** True for a route whose requests are recorded: every write, unless the route declares otherwise. */
export const isAudited = ({ method, audited }: Pick<AuditedRoute, 'method' | 'audited'>): boolean =>
  audited !== false && !['get', 'head', 'options'].includes(method)

/** Names the caller of a request without a key, once the handler knows the caller. */
export function noteCaller(res: Response, caller: Partial<AuditCaller>): void {
  res.locals.auditCaller = { ...NOBODY, via: 'link', ...caller }
}

/**
 * Writes the entry of a request before it changes anything, if it is not written yet. Handlers of routes without a key
 * call it when they know the caller. The entry is `unknown` until the outcome is known.
 * @throws the database's error: nothing may be changed then.
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
   * Records that a request of a route begins, when {@link beginEntry} is called, and its outcome, before the end of the
   * response is sent. So there is no change without an entry, and a client with a response can find the outcome. If the
   * outcome cannot be written, a response that has not begun becomes an error.
   */
  ofRoute(declared: AuditedRoute): RequestHandler {
    return (req, res, next) => {
      // Outside this route, they differ.
      const { params } = req
      const { end } = res
      let isWritten = false
      let begun: AuditRow | undefined
      let beginning: Promise<void> | undefined
      let ending: Promise<void> | undefined
      const begin = async () => {
        // The entry of a disconnected client is already written.
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
        // Never write both in one statement.
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
        // The sink reports its own problems.
        if (!isWritten) write(CLIENT_GONE)?.catch(() => {})
      })
      next()
    }
  }

  /** Records that a token was exchanged for a cookie, or for an open connection. */
  async signIn(req: Request, res: Response, principal: Principal, resource: string): Promise<void> {
    res.locals.auditCaller = callerFrom(principal)
    await this.#sink.write(
      auditRow({ ...entryOf(req, res, res.locals.auditCaller, 200), ...SIGN_IN, resource }),
    )
  }

  /** Runs a connection, and records its beginning and its end: two entries with the same request id. */
  async ofConnection(
    declared: AuditedRoute,
    ended: string,
    { req, res }: { req: Request; res: Response },
    run: () => Promise<unknown>,
  ): Promise<void> {
    const entry = {
      ...entryOf(req, res, callerOf(res), declared.success.status),
      method: declared.method.toUpperCase(),
      route: declared.path,
      resource: resourceOf(declared, req.params, undefined),
    }
    await this.#sink.write(auditRow({ ...entry, action: declared.id }))
    try {
      await run()
    } finally {
      // The sink reports its own problems.
      await this.#sink.write(auditRow({ ...entry, action: ended })).catch(() => {})
    }
  }

  /** Records that a credential was refused, within the limits per minute. The response does not wait for it. */
  failedSignIn(req: Request, res: Response, code: string): void {
    res.locals.hasFailed = true
    if (!this.#hasRoom(req)) return
    const entry = { ...entryOf(req, res, NOBODY, 401), ...SIGN_IN, errorCode: code, resource: '' }
    this.#sink.write(auditRow(entry)).catch(() => {})
  }

  #isWanted(req: Request, res: Response, caller: AuditCaller, status: number): boolean {
    if (caller.via === 'nobody' && status >= 400) return !res.locals.hasFailed && this.#hasRoom(req)
    // In each minute, only the first request beyond a limit is recorded.
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

  /** Adds a refusal without an entry to the common entry for this minute. */
  #drop(address: string): void {
    if (this.#dropped.size === 0) setTimeout(() => this.#writeDropped(), MINUTE_MS).unref()
    const isKnown = this.#dropped.has(address) || this.#dropped.size < MAX_ADDRESSES
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
/** One entry for all refusals of a minute that have no entry of their own; its address is the most frequent one. */
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

/** Path parameters that are secrets. */
const SECRETS = ['token']
/** The format of an id or a name; a client may have sent anything else by mistake. */
const NAME = /^[\w.:@~-]{1,64}$/

/**
 * The resource of a request: the path up to its last parameter, without a version and without secrets, or the whole
 * path if it has no parameter. For a POST that created something, its id follows the whole path.
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

/** The id in a response, wherever this kind of resource has it. */
function idOf(answer: unknown): string | undefined {
  const body = (answer ?? {}) as Record<string, Record<string, unknown>>
  const ids = [body.data?.id, body.agent?.agentId, body.id, body.requestid, body.pinata_api_key]
  return ids.find((id): id is string & Record<string, unknown> => typeof id === 'string')
}
