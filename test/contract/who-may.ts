/** Asks every route of the document with every sort of credential, and makes the table of `docs/security.md` of it. */
import { isOfInstance, SCOPES } from '../../src/http/principal.ts'
import type { Document, Operation } from '../support/openapi.ts'

/** A caller with a credential. */
export interface Credential {
  name: string
  /** Where it is good, and its token; none for nobody. */
  url: string
  token?: string
}

/** The workspace, and the agent and the operation that a request is about; of its own, since some requests delete it. */
export interface Target {
  workspaceId: string
  agentId: string
  /** Ids of other parameters of the path, by their names. */
  ids: Record<string, string>
  operation: string
}

export interface Asked {
  id: string
  tag: string
  method: string
  path: string
}

/** The route for its own agent that the platform skill may call with BERTH_PLATFORM_TOKEN_SCOPE=workspace alone. */
export const WIDENED_OWN = 'attachSecrets'

/** The outcome of a request: let in, whatever was answered then; or refused, 404 where it is there for others. */
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
 * Sends what passes the check of who asks, and is refused right after it where it would do anything.
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

/** @param forAdmin the status that a key gets which may do everything. */
export const outcomeOf = (status: number, forAdmin: number): Outcome =>
  status === 401 || status === 403 || (status === 404 && forAdmin !== 404) ? status : 'in'

/** Outcomes of a route, by the names of the credentials. */
export type Outcomes = Record<string, Outcome>

/** A route, and what each credential got there. */
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

/** The least scopes with which a key is let in; write goes for read. */
function leastScopes(outcomes: Outcomes): string {
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

/** The table in Markdown, a part for each tag. */
export function table(asked: Answered[]): string {
  const head = `| route | key with | ${COLUMNS.map(([title]) => title).join(' | ')} |\n|${'---|'.repeat(COLUMNS.length + 2)}`
  return [...Map.groupBy(asked, ({ route }) => route.tag)]
    .map(([tag, rows]) => {
      const lines = rows.map(({ route: { method, path }, outcomes }) => {
        const marks = COLUMNS.map(([, name]) => MARKS[outcomes[name] ?? 401])
        return `| \`${method} ${path}\` | ${leastScopes(outcomes)} | ${marks.join(' | ')} |`
      })
      return `### ${tag}\n\n${head}\n${lines.join('\n')}`
    })
    .join('\n\n')
}
