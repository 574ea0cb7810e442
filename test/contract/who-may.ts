/**
 * Requests every route of the document with every kind of credential, and builds the table of `docs/security.md` from
 * the outcomes.
 */
import { isOfInstance, SCOPES } from '../../src/http/principal.ts'
import type { Document, Operation } from '../support/openapi.ts'

/** A caller with a credential. */
export interface Credential {
  name: string
  /** The server that accepts it, and its token; none for an anonymous caller. */
  url: string
  token?: string
}

/** The workspace, and the agent and operation of a request; created for it, because some requests delete them. */
export interface Target {
  workspaceId: string
  agentId: string
  /** Ids for other path parameters, by parameter name. */
  ids: Record<string, string>
  operation: string
}

export interface Asked {
  id: string
  tag: string
  method: string
  path: string
}

/** The route for its own agent that the platform skill may call only with BERTH_PLATFORM_TOKEN_SCOPE=workspace. */
export const WIDENED_OWN = 'attachSecrets'

/**
 * The outcome of a request: `in` if it was let in, whatever the response; otherwise refused, with 404 only if it exists
 * for others.
 */
export type Outcome = 'in' | 401 | 403 | 404

export const BEGIN = '<!-- Made by `npm run docs:security`. -->'
export const END = '<!-- End of what is made. -->'

const ANSWER_MS = 30_000
const BODYLESS = ['GET', 'HEAD', 'OPTIONS', 'DELETE']

/** Every route, in the document's order. */
export const routesOf = ({ paths }: Document): Asked[] =>
  Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations as Record<string, Operation & { tags: string[] }>).map(
      ([method, { operationId: id, tags }]) => ({
        id,
        tag: tags[0] ?? '',
        method: method.toUpperCase(),
        path,
      }),
    ),
  )

/**
 * Sends a request that passes the access check, but is refused right after it if it would change anything.
 * @returns the status.
 */
export async function ask(route: Asked, { url, token }: Credential, target: Target): Promise<number> {
  const path = route.path
    .replace('{agentId}', target.agentId)
    .replace('{workspaceId}', target.workspaceId)
    .replace('/operations/{id}', `/operations/${target.operation}`)
    .replace(/\{(\w+)\}/g, (_, name) => target.ids[name] ?? 'x')
  const response = await fetch(`${url}${path}`, {
    method: route.method,
    headers: {
      ...(token && { authorization: `Bearer ${token}` }),
      'content-type': 'application/json',
      prefer: 'respond-async',
    },
    ...(!BODYLESS.includes(route.method) && { body: '{}' }),
    signal: AbortSignal.timeout(ANSWER_MS),
  })
  await response.body?.cancel()
  return response.status
}

/** @param forAdmin the status for a key that may do everything. */
export const outcomeOf = (status: number, forAdmin: number): Outcome =>
  status === 401 || status === 403 || (status === 404 && forAdmin !== 404) ? status : 'in'

/** Outcomes of a route by credential name. */
export type Outcomes = Record<string, Outcome>

/** A route, and each credential's outcome there. */
export interface Answered {
  route: Asked
  outcomes: Outcomes
}

const COLUMNS: [title: string, credential: string][] = [
  ['member', 'member'],
  ['viewer', 'viewer'],
  ['gateway', 'gateway'],
  ['platform', 'platform'],
  ['wide', 'wide'],
  ['other agent', 'other agent'],
  ['other workspace', 'other workspace'],
  ['revoked', 'revoked'],
  ['nobody', 'nobody'],
]
const MARKS: Record<Outcome, string> = { in: '✓', 401: '401', 403: '–', 404: '404' }

/** The minimal scopes that give a key access; write includes read. */
function leastScopes({ path }: Asked, outcomes: Outcomes): string {
  if (path === '/v0/llm/chat/completions') return 'the LLM key'
  const enough = SCOPES.filter((scope) => outcomes[scope] === 'in')
  if (enough.length === SCOPES.length) return outcomes.nobody === 'in' ? 'none' : 'any key'
  if (enough.length === 0) return outcomes.admin === 403 ? 'a session' : 'a signed address'
  const least = enough.filter(
    (scope) =>
      /^org:\w+:/.test(scope) &&
      !(scope.endsWith(':write') && enough.includes(scope.replace('write', 'read') as never)),
  )
  if (least.length > 0) return least.map((scope) => `\`${scope.slice('org:'.length)}\``).join(', ')
  return `\`${enough.find((scope) => scope.startsWith('org:')) ?? enough.find(isOfInstance) ?? enough[0]}\``
}

/** The table in Markdown, with a section for each tag. */
export function table(asked: Answered[]): string {
  const head = `| route | key with | ${COLUMNS.map(([title]) => title).join(' | ')} |\n|${'---|'.repeat(COLUMNS.length + 2)}`
  return [...Map.groupBy(asked, ({ route }) => route.tag)]
    .map(([tag, rows]) => {
      const lines = rows.map(({ route, outcomes }) => {
        const marks = COLUMNS.map(([, name]) => MARKS[outcomes[name] ?? 401])
        return `| \`${route.method} ${route.path}\` | ${leastScopes(route, outcomes)} | ${marks.join(' | ')} |`
      })
      return `### ${tag}\n\n${head}\n${lines.join('\n')}`
    })
    .join('\n\n')
}
