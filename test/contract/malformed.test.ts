/**
 * Malformed requests to every route: 400 with a message that names the field, and nothing changes. The page
 * `docs/fields.md` shows the messages; `npm run docs:fields` writes it.
 */
import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { before, describe, it } from 'node:test'
import { type Malformed, malformedOf } from '../fuzz/malformed.ts'
import { createWorkspace } from '../fuzz/pool.ts'
import { stateOf } from '../fuzz/state.ts'
import type { Operation } from '../support/openapi.ts'
import { insertAgent } from './agents/rows.ts'
import { inlineCid, openContext } from './context.ts'
import { OF_DASHBOARD, openSession } from './session-client.ts'

const PAGE = new URL('../../docs/fields.md', import.meta.url)
const INTRODUCTION = `# Fields and parameters

This page says what the fields of JSON bodies and the parameters of queries must be, in the words of the 400 responses. If a route has one message for every malformed body, these words are in the header \`Error-Detail\`. \`npm run docs:fields\` writes this page from the responses to malformed requests, which a test derives from \`/openapi.json\`. No parameter may be given twice. [Errors](errors.md) lists all other statuses.
`
const SIDE_BY_SIDE = 8
const ANSWER_MS = 60_000

/** Fields that the server checks later than the shape of a request, or less strictly than the document says. */
const EXEMPT = new Set([
  // The engine or the model gateway checks these.
  ...['createChatCompletion', 'createResponse', 'createLlmCompletion', 'sendMessage text'],
  // Compared with what exists, so a malformed value is only an unknown one.
  ...['restartAgent version', 'updateAgent tag', 'listWorkspaceKeys userId', 'listOperations target'],
  // Checked after what the path names has been found: other tests of these routes have it.
  ...['listSkillVersions pageToken', 'addSkillVersion skillCid'],
  ...['updateSkill skillCid', 'updateSkill expectedSkillCid'],
  // Only one of several fields may be present, and the example has another one.
  ...['signUpload url', 'addGatewayDomain custom_domain', 'addDomain subdomain', 'addDomain customDomain'],
  // One message for every unknown channel.
  ...['configureChannel channel', 'removeChannel channel'],
  // The older API takes numbers as well.
  ...['pinJSONToIPFS pinataMetadata.keyvalues.key', 'pinByHash pinataMetadata.keyvalues.key'],
])

const context = await openContext()
const own = await createWorkspace(context)
const session = await openSession(context.anonymous, own)
const cid = `${inlineCid('any')}`
const webhook = await own.api.post('/v0/webhooks', { url: 'https://hooks.invalid/', events: ['webhook.*'] })
/** What a path names: some routes look for it before they check the other parameters. */
const IDS: Record<string, string> = {
  ...{ agentId: (await insertAgent(context, own)).agentId, workspaceId: own.id },
  ...{ network: 'public', cid, skillId: cid, channel: 'telegram' },
  id: webhook.body.data.id,
  conversationId: '0191f0f0-0000-7000-8000-000000000000',
}

interface Asked extends Malformed {
  id: string
  method: string
  path: string
}
interface Refusal extends Asked {
  status: number
  /** The detail of the error, or else its message. */
  says: string
}

const { document } = context.anonymous
const routes = Object.entries(document.paths).flatMap(([path, operations]) =>
  Object.entries<Operation>(operations).map(([method, operation]) => ({
    ...{ id: operation.operationId, method: method.toUpperCase(), path, operation },
  })),
)
const malformed: Asked[] = routes.flatMap(({ operation, ...route }) =>
  malformedOf(operation, document)
    .filter(({ field }) => ![route.id, `${route.id} ${field}`].some((name) => EXEMPT.has(name)))
    .map((request) => ({ ...route, ...request })),
)

async function send(asked: Asked, withSession = false): Promise<Refusal> {
  const { method, path, query, json, inPath } = asked
  const at = path.replace(/\{(\w+)\}/g, (_, name) => inPath?.[name] ?? IDS[name] ?? 'x')
  const response = await fetch(`${context.url}${at}${query ? `?${new URLSearchParams(query)}` : ''}`, {
    method,
    headers: {
      'content-type': 'application/json',
      ...(withSession
        ? { cookie: session.cookie, ...OF_DASHBOARD }
        : { authorization: `Bearer ${own.api.key}` }),
    },
    ...(json !== undefined && { body: JSON.stringify(json) }),
    signal: AbortSignal.timeout(ANSWER_MS),
  })
  const { status, headers } = response
  const text = await response.text()
  if (headers.get('error-code') === 'session_needed' && !withSession) return send(asked, true)
  if (status < 400) return { ...asked, status, says: '' }
  const { error } = JSON.parse(text)
  return { ...asked, status, says: headers.get('error-detail') ?? error.details ?? error }
}

describe('a malformed request', () => {
  const refusals: Refusal[] = []
  let state: unknown[]

  before(async () => {
    state = await stateOf(context, own.id)
    const left = malformed.entries()
    const worker = async () => {
      for (const [index, one] of left) refusals[index] = await send(one)
    }
    await Promise.all(Array.from({ length: SIDE_BY_SIDE }, worker))
  })

  it('a malformed request returns 400 with a message that names the field, on every route', () => {
    assert.ok(refusals.length > 1000)
    const others = refusals.filter(({ status, field, sent, says }) => {
      const named = /^([\w.[\]-]+)(:|,| must) /.exec(says)?.[1] ?? ''
      const isNamed = field.startsWith(named) || named.startsWith(field)
      const isOfWhole = field === 'body' || (sent === 'nothing' && named === 'body')
      const isRight = sent === 'twice' ? says === `${named}: given twice` : named !== ''
      return status !== 400 || !isRight || !(isNamed || isOfWhole)
    })
    assert.deepEqual(others, [])
  })
  it('a malformed request changes nothing', async () => {
    assert.deepEqual(await stateOf(context, own.id), state)
  })
  it('docs/fields.md has the messages for malformed requests', async () => {
    const expected = pageOf(refusals)
    if (process.env.BERTH_TEST_DOCS === 'write') await writeFile(PAGE, expected)
    else assert.equal(await readFile(PAGE, 'utf8'), expected, 'run `npm run docs:fields`')
  })
})

/** The page in Markdown: a table for each route, with a line for each field. */
function pageOf(refusals: Refusal[]): string {
  const sections = [...Map.groupBy(refusals, ({ method, path }) => `${method} ${path}`)].map(
    ([route, all]) => {
      const wrong = all.filter(({ sent }) => sent !== 'twice')
      const lines = [...Map.groupBy(wrong, ({ field }) => field)].map(([field, ofField]) => {
        const said = new Set(ofField.map(({ says }) => says.replace(`${field}: `, '').replaceAll('`', "'")))
        return `| \`${field}\` | ${[...said].map((message) => `\`${message.replaceAll('|', '\\|')}\``).join(', ')} |\n`
      })
      return lines.length === 0 ? '' : `\n## ${route}\n\n| field | |\n|---|---|\n${lines.join('')}`
    },
  )
  return [INTRODUCTION, ...sections].join('')
}
