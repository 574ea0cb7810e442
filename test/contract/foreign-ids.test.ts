/**
 * Ids of other workspaces, and ids of nothing: every route that names something by its id returns 404, and nothing
 * changes. New routes are included automatically; `agents/access.test.ts` tests the ids of agents in the same way.
 */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { uuidv7 } from 'uuidv7'
import { stateOf } from '../fuzz/state.ts'
import { assertError, type Client, type Reply } from '../support/client.ts'
import type { Operation } from '../support/openapi.ts'
import { insertAgent } from './agents/rows.ts'
import { skillMd, uploadFolder } from './agents/skill-folders.ts'
import { MISSING_ID, templateMaker } from './agents/templates.ts'
import { missingCid, openContext } from './context.ts'
import { openGateway } from './gateway.ts'
import { openSession } from './session-client.ts'
import { store } from './stored.ts'

const NONE = /no such |not a file of this workspace$|has no (signature|file)|^CID (is not swapped|not pinned)/
/** Parameters that name no row of a workspace, and ids that only the engine of a running agent knows. */
const OTHERS = [
  'network',
  'agentId',
  'workspaceId',
  'domain',
  'slug',
  'channel',
  ...['provider', 'model'],
  'token',
  'plugin_id',
]
const OF_ENGINE = ['conversationId', 'jobId', 'requestId']
const OTHERWISE = [
  // Says that the skill was not in the library.
  'deleteSkill',
  // Everyone who knows the gateway may read them.
  ...['swapHistory', 'swapHistoryOlder'],
  // For admins of the instance.
  ...['getAnyWorkspace', 'changeWorkspace', 'changePlan'],
]

const context = await openContext()
const maker = await templateMaker(context)
const { workspace: own, agent } = maker
const { api } = own
const other = await context.workspace()
const session = await openSession(context.anonymous, other)
const sibling = await insertAgent(context, own)

/** Creates something; resolves to its record, in this field of the response. */
async function make(path: string, json: unknown, field = 'data'): Promise<Record<string, string>> {
  const { status, body } = await api.post(path, json)
  assert.ok(status < 300, `${path}: ${JSON.stringify(body)}`)
  return body[field]
}
await maker.snapshot()
const { templateId, slug } = await maker.make()
const { id: fileId, cid } = await store(api, 'public', 'a file of its workspace')
const hidden = await store(api, 'private', 'a private file')
const target = await store(api, 'public', 'the target of its swap')
assert.equal((await api.put(`/v3/files/public/swap/${cid}`, { swap_cid: target.cid })).status, 200)
const signed = { signature: `0x${'ab'.repeat(65)}`, address: `0x${'12'.repeat(20)}` }
await make(`/v3/files/public/signature/${cid}`, signed)
const pin = await api.pin({ cid: `${await missingCid()}` })
const gateway = `/v3/gateways/${(await openGateway(context, own)).id}`
const custom = await make(`${gateway}/custom_domain`, { domain: `${uuidv7()}.example.test` })
const token = await make(`${gateway}/access_tokens`, {})
const webhook = await make('/v0/webhooks', { url: 'https://hooks.invalid/', events: ['webhook.disabled'] })
const delivery = await make(`/v0/webhooks/${webhook.id}/test`, {})
const secret = await make('/v0/secrets', { name: 'FOREIGN', value: 'x' }, 'secret')
const { cid: skillCid } = await uploadFolder(api, { 'SKILL.md': skillMd() })
const { skillId } = await make('/v0/skills', { skillCid, name: 'foreign' }, 'skill')
const domain = await make(
  `${agent.path}/domains`,
  { subdomain: `s${Date.now()}`, targetPort: 3000 },
  'domain',
)
await make(`${agent.path}/secrets`, { secretIds: [secret.id] })
await make(`${agent.path}/skills`, { skillCids: [skillCid] })
const [key] = (await api.get(`/v0/workspaces/${own.id}/keys`)).body.data.keys
const invitation = await make(`/v0/workspaces/${own.id}/invitations`, { role: 'viewer' })

type Ids = Record<string, string | undefined>
/** Ids of the workspace, by parameter, for paths that match; the first that matches counts. */
const IDS: [path: RegExp, ids: Ids][] = [
  [/pin_by_cid|^.psa/, { id: pin.record.id, requestid: pin.record.id }],
  [/^.v0.files.private/, { id: hidden.id }],
  [/^.v3.groups/, { id: (await make('/v3/groups/public', { name: 'foreign' })).id, fileId }],
  [
    /^.v3.gateways/,
    {
      ...{ id: gateway.split('/').at(-1), gateway_id: gateway.split('/').at(-1), plugin_id: '2' },
      ...{ custom_domain_id: custom.custom_domain_id, item_id: token.id },
    },
  ],
  [/^.v0.webhooks/, { id: webhook.id, deliveryId: delivery.id }],
  [/^.v0.operations/, { id: pin.operation }],
  [/^.v0.secrets/, { id: secret.id }],
  [/^.v0.agents/, { secretId: secret.id, skillId, domainId: domain.id }],
  [
    /^.v0.workspaces/,
    { userId: (await own.member('member')).id, keyId: key.id, invitationId: invitation.id },
  ],
  [/^/, { id: fileId, cid, hash: cid, key: key.publicKey, skillId, templateId, sessionId: key.id }],
]
const unknownCid = `${await missingCid()}`
const ODD = ['x', '%00', '..%2f..', '0'.repeat(300)]
/** For parameters that do not take UUIDs. */
const UNKNOWN: Ids = { cid: unknownCid, hash: unknownCid, skillId: unknownCid, templateId: MISSING_ID }

interface Route {
  method: string
  path: string
  operation: Operation
  ids: string[]
}
const routes: Route[] = Object.entries(context.anonymous.document.paths)
  .flatMap(([path, operations]) =>
    Object.entries<Operation>(operations).map(([method, operation]) => ({
      ...{ method: method.toUpperCase(), path, operation },
      ids: [...path.matchAll(/\{(\w+)\}/g)].flatMap(([, name = '']) => (OTHERS.includes(name) ? [] : name)),
    })),
  )
  .filter(({ ids, operation }) => ids.length > 0 && !OTHERWISE.includes(operation.operationId))
  .filter(({ ids, path }) => !ids.some((name) => OF_ENGINE.includes(name)) && !path.includes('/tus/'))

async function ask(client: Client, route: Route, ids: Ids, network = 'public'): Promise<Reply> {
  const { method, path, operation } = route
  const content = operation.requestBody?.content['application/json'] as { example?: unknown } | undefined
  const at = path.replace('{network}', network).replace(/\{(\w+)\}/g, (_, name) => ids[name] ?? uuidv7())
  const reply = await client.request(method, at, { json: content?.example })
  if (reply.headers.get('error-code') !== 'session_needed') return reply
  return session.ask(method, at, {}, content?.example)
}
const idsOf = ({ path, operation }: Route): Ids => ({
  ...IDS.find(([pattern]) => pattern.test(path))?.[1],
  ...(operation.operationId === 'getTemplate' && { templateId: slug }),
})

const hiddenGroup = await make('/v3/groups/private', { name: 'hidden' })
/** On the private network. */
const hiddenIdsOf = ({ path }: Route): Ids =>
  path.includes('/groups/') ? { id: hiddenGroup.id, fileId: hidden.id } : { id: hidden.id, cid: hidden.cid }

describe('ids', () => {
  it('an id of another workspace, agent or network returns 404 on every route, and changes nothing', async () => {
    const before = await stateOf(context, own.id)
    assert.ok(routes.length > 60)
    for (const route of routes) {
      const client = route.path.includes('{agentId}') ? api : other.api
      const ids = { ...idsOf(route), agentId: sibling.agentId, workspaceId: other.id }
      assertError(await ask(client, route, ids), 404, NONE)
      if (route.path.includes('{network}'))
        for (const [who, there] of [
          [other.api, hiddenIdsOf(route)],
          [api, ids],
        ] as const)
          assertError(await ask(who, route, { ...ids, ...there }, 'private'), 404, NONE)
    }
    assert.deepEqual(await stateOf(context, own.id), before)
  })
  it('the same ids are found with the key of their workspace', async () => {
    for (const route of routes.filter(({ method }) => method === 'GET')) {
      const ids = { ...idsOf(route), agentId: agent.agentId, workspaceId: own.id }
      if (route.operation.operationId === 'streamOperation') continue
      assert.notEqual((await ask(api, route, ids)).status, 404, route.path)
    }
  })
  it('an unknown or malformed id returns 404 on every route', async () => {
    for (const [index, route] of routes.entries()) {
      const last = route.ids.at(-1) ?? ''
      const ids = { ...idsOf(route), agentId: agent.agentId, workspaceId: own.id }
      // The name of a key is checked for its form.
      const odd = last === 'key' ? 'x' : ODD[index % ODD.length]
      for (const id of UNKNOWN[last] ? [UNKNOWN[last]] : [uuidv7(), odd])
        assertError(await ask(api, route, { ...ids, [last]: id }), 404, NONE)
    }
  })
})
