/** What goes on of a visitor's headers to a program of an agent, and of its answer to the visitor. */
import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http'
import type { Request } from 'express'
import { PORT_AUTHORIZATION_HEADER } from '../../../agentd/protocol.ts'
import { isUpgrade } from '../../http/upgrade.ts'
import { COOKIE } from '../agents/credential.ts'

/** Of one connection only (RFC 9110, 7.6.1). */
const HOP_BY_HOP =
  /^(connection|keep-alive|proxy-authenticate|proxy-authorization|proxy-connection|te|trailer|transfer-encoding|upgrade)$/
/** What we say ourselves, and what is between Berth and agentd; to many programs `_` is the same as `-`. */
const REQUEST_DROPPED =
  /^(host|authorization|cookie|expect|content-length|forwarded|via|x-forwarded-.*|x-real-ip|berth-.*)$/
/** Ours stay; where a server says that it is also elsewhere, that is past Berth. */
const ANSWER_DROPPED = /^(x-request-id|alt-svc|berth-.*)$/
/** What would change how a browser treats this host, and not just this answer; it answers the API as well. */
const OF_THE_HOST =
  /^(set-cookie|clear-site-data|strict-transport-security|service-worker-allowed|nel|report-to|reporting-endpoints)$/
/** No origin of its own: so that a page can neither read the API nor send its cookie there. */
const SANDBOX = 'sandbox allow-scripts allow-forms allow-popups allow-modals allow-downloads'

/** What a visitor is to the program. */
export interface Visitor {
  /** Without what was Berth's. */
  cookie: string | undefined
  authorization: string | undefined
  /** What was cut off the path; undefined where nothing was. */
  prefix: string | undefined
  /** Whether the visitor's browser speaks https. */
  isSecure: boolean
}

/** The headers of a request as agentd gets them for a port. */
export function toProgram(req: Request, visitor: Visitor): Record<string, string> {
  const { cookie, authorization, prefix, isSecure } = visitor
  const { headers } = req
  const passed = endToEnd(headers).filter(
    (entry): entry is [string, string] =>
      typeof entry[1] === 'string' && !REQUEST_DROPPED.test(entry[0].replaceAll('_', '-')),
  )
  return {
    ...Object.fromEntries(passed),
    // As the visitor wrote it, also to a proxy in front.
    host: req.host,
    'x-forwarded-for': req.ip ?? '',
    'x-forwarded-host': req.host,
    'x-forwarded-proto': isSecure ? 'https' : 'http',
    ...(prefix !== undefined && { 'x-forwarded-prefix': prefix }),
    ...(cookie && { cookie }),
    ...(authorization !== undefined && { [PORT_AUTHORIZATION_HEADER]: authorization }),
    ...bodyFrame(req),
  }
}

/** Whether a request has a body; one that says so of an upgrade has none. */
export const hasBody = (req: Request): boolean =>
  !isUpgrade(req) && ('transfer-encoding' in req.headers || Number(req.headers['content-length'] ?? 0) > 0)

/** Node frames a body by itself for some methods only; without a frame it would be the next request. */
function bodyFrame(req: Request): Record<string, string> {
  if (!hasBody(req)) return {}
  const length = req.headers['content-length']
  return length === undefined ? { 'transfer-encoding': 'chunked' } : { 'content-length': length }
}

/**
 * The headers of a program's answer.
 * @param where `own`: a host that is the program's alone; `agent`: the agent's own host, where it runs in a sandbox.
 * @param isProtected it must not be kept for other visitors.
 */
export function toVisitor(
  headers: IncomingHttpHeaders,
  { where, isProtected }: { where: 'own' | 'agent'; isProtected: boolean },
): OutgoingHttpHeaders {
  const passed = endToEnd(headers).filter(
    ([name]) => !ANSWER_DROPPED.test(name) && !(where === 'agent' && OF_THE_HOST.test(name)),
  )
  const answer: OutgoingHttpHeaders = Object.fromEntries(passed)
  // It would end the visitor's sessions at all hosts beside this one.
  delete answer['clear-site-data']
  if (headers['set-cookie'] && where === 'own') answer['set-cookie'] = ownCookies(headers['set-cookie'])
  if (isProtected) answer['cache-control'] = privately(headers['cache-control'])
  if (where === 'agent') {
    const policies = [headers['content-security-policy'] ?? [], SANDBOX].flat()
    answer['content-security-policy'] = policies.join(', ')
    answer['x-content-type-options'] = 'nosniff'
  }
  return answer
}

/** Cookies for this very host: hosts beside it are other agents'. Ours is nobody else's to set. */
export function ownCookies(cookies: string[]): string[] {
  return cookies
    .filter((cookie) => cookie.split('=')[0]?.trim() !== COOKIE)
    .map((cookie) => cookie.replace(/;\s*domain\s*(?:=[^;]*)?(?=;|$)/gi, ''))
}

/** What came for a token is for its holder only, whatever the program says. */
function privately(cacheControl = ''): string {
  const others = cacheControl
    .split(',')
    .map((directive) => directive.trim())
    .filter((directive) => directive !== '' && !/^(public|private|s-maxage)\b/i.test(directive))
  return ['private', ...others].join(', ')
}

function endToEnd(headers: IncomingHttpHeaders): [string, string | string[] | undefined][] {
  const named = (headers.connection ?? '').split(',').map((name) => name.trim().toLowerCase())
  return Object.entries(headers).filter(([name]) => !HOP_BY_HOP.test(name) && !named.includes(name))
}
