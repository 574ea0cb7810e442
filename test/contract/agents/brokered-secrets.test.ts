/** Secrets with hosts, and what egress proxies get of them. Insertion is tested in test/integration/agent-proxy. */
import assert from 'node:assert/strict'
import { createHash, randomUUID } from 'node:crypto'
import { describe, it } from 'node:test'
import { AGENTD_PORT } from '../../../agentd/protocol.ts'
import { EGRESS_CONTROL } from '../../../src/agent-proxy/policy/protocol.ts'
import { loadAgentProxyKey, loadConfig } from '../../../src/config.ts'
import { assertError } from '../../support/client.ts'
import { openContext } from '../context.ts'
import { insertAgent, type RowAgent } from './rows.ts'

const SECRETS = '/v0/secrets'
const VALUE = 'ghp_Ab3dEf9hIjKlMn0pQr'
const HOSTS = ['api.example.com']

const context = await openContext()
const { sql } = context
const proxyKey = loadAgentProxyKey(loadConfig(context.env))
const own = await context.workspace()
const { api } = own

let last = 0
const create = async (more: object = {}) => {
  const { status, body } = await api.post(SECRETS, {
    name: `BROKERED_${++last}`,
    value: VALUE,
    hosts: HOSTS,
    ...more,
  })
  assert.equal(status, 201, JSON.stringify(body))
  return body.secret
}
const change = async (id: string, body: object) => {
  const reply = await api.put(`${SECRETS}/${id}`, body)
  assert.equal(reply.status, 200, JSON.stringify(reply.body))
  return reply.body.secret
}
const placeholderOf = async (id: string) =>
  (await sql('SELECT placeholder FROM secret WHERE id = $1', [id]))[0]?.placeholder

/** The secrets that an egress proxy gets for a client. */
async function secretsFor(...clients: { credential: string; address: string }[]) {
  const response = await fetch(`${context.url}${EGRESS_CONTROL}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${proxyKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ clients, counts: [] }),
  })
  assert.equal(response.status, 200)
  const { policies } = (await response.json()) as { policies: { secrets: object[] }[] }
  return policies.map(({ secrets }) => secrets)
}

/** An agent that was started, in a container unless `isProcess`. */
async function startedAgent({ isProcess = false } = {}) {
  const agent = await insertAgent(context, own)
  const hash = () => createHash('sha256').update(randomUUID()).digest('hex')
  const credential = hash()
  const address = `10.${[1, 2, 3].map(() => Math.trunc(Math.random() * 255)).join('.')}`
  await sql(
    `UPDATE agent SET status = 'running', address = $4, model_key_hash = decode($2, 'hex'), proxy_key_hash = decode($3, 'hex')
     WHERE id = $1`,
    [agent.id, hash(), isProcess ? null : credential, `${address}:${AGENTD_PORT}`],
  )
  return { ...agent, client: { credential, address } }
}
const attach = ({ path }: RowAgent, ...secretIds: string[]) => api.post(`${path}/secrets`, { secretIds })
/** Notes that the agent was started with the current version of a secret, as a worker does. */
const start = (agent: RowAgent, id: string) =>
  sql(
    `UPDATE agent SET applied_secret_versions = jsonb_build_object($2::text, (SELECT version FROM secret WHERE id = $2::uuid))
     WHERE id = $1`,
    [agent.id, id],
  )
const stateIn = async ({ path }: RowAgent, id: string) => {
  const { secrets } = (await api.get(`${path}/secrets`)).body
  const { readable, synced } = secrets.find((secret: { id: string }) => secret.id === id)
  return { readable, synced }
}

describe('a secret with hosts', () => {
  it('a secret with hosts shows them and how it travels, and is not readable', async () => {
    const secret = await create({ hosts: ['API.Example.com', '*.bücher.example', 'api.example.com'] })
    const shown = {
      hosts: ['api.example.com', '*.xn--bcher-kva.example'],
      via: { as: 'bearer' },
      readable: false,
    }
    const listed = (await api.get(SECRETS)).body.secrets.find(({ id }: { id: string }) => id === secret.id)
    for (const { hosts, via, readable } of [secret, listed]) assert.deepEqual({ hosts, via, readable }, shown)
    const { via } = await create({ via: { as: 'header', name: 'X-Api-Key' } })
    assert.deepEqual(via, { as: 'header', name: 'X-Api-Key' })
  })

  it('hosts and via stay unless given, change only with the value, and null or [] removes them', async () => {
    const { id } = await create({ via: { as: 'query', name: 'key' } })
    const shown = async (body: object) => {
      const { hosts, via, readable } = await change(id, { value: VALUE, ...body })
      return { hosts, via, readable }
    }
    assert.deepEqual(await shown({}), { hosts: HOSTS, via: { as: 'query', name: 'key' }, readable: false })
    assert.deepEqual(await shown({ via: { as: 'basic' } }), {
      hosts: HOSTS,
      via: { as: 'basic' },
      readable: false,
    })
    const hosts = ['other.example.com']
    assert.deepEqual(await shown({ hosts }), { hosts, via: { as: 'basic' }, readable: false })
    const none = { hosts: null, via: null, readable: true }
    assert.deepEqual(await shown({ hosts: [] }), none)
    assert.deepEqual(await shown({}), none)
    assert.deepEqual(await shown({ hosts }), { hosts, via: { as: 'bearer' }, readable: false })
    assert.deepEqual(await shown({ hosts: null }), none)
    assert.equal(await placeholderOf(id), null)
  })

  it('hosts and via cannot change without the value', async () => {
    const { id } = await create()
    for (const body of [{ hosts: ['evil.example.com'] }, { hosts: null }, { via: { as: 'basic' } }])
      assertError(await api.put(`${SECRETS}/${id}`, body), 400, 'value: is required')
    const { hosts } = (await api.get(SECRETS)).body.secrets.find((secret: { id: string }) => secret.id === id)
    assert.deepEqual(hosts, HOSTS)
  })

  it('a key of a model provider is not readable without hosts', async () => {
    const { id, hosts, readable } = await create({ name: 'OPENAI_API_KEY', hosts: undefined })
    assert.deepEqual([hosts, readable], [null, false])
    const agent = await startedAgent()
    await attach(agent, id)
    assert.deepEqual(await stateIn(agent, id), { readable: false, synced: false })
    await start(agent, id)
    await change(id, { value: 'another' })
    assert.deepEqual(await stateIn(agent, id), { readable: false, synced: true })
    // It runs since before Berth had a model gateway.
    await sql('UPDATE agent SET model_key_hash = NULL, proxy_key_hash = NULL WHERE id = $1', [agent.id])
    assert.deepEqual(await stateIn(agent, id), { readable: true, synced: false })
  })
})

describe('hosts that a secret cannot have', () => {
  const HOST = /^hosts\[0\]: must be a host such as api\.example\.com, or \*\.example\.com /
  const refused: [what: string, body: object, message: string | RegExp][] = [
    ...[
      '192.0.2.1',
      '0x7f.1',
      '[::1]',
      'example.com:443',
      'https://example.com',
      'example.com/x',
      'localhost',
      '',
    ].map((host): [string, object, RegExp] => [`the host ${host || '(empty)'}`, { hosts: [host] }, HOST]),
    ...[
      '*.com',
      '*.co.uk',
      '*.github.io',
      '*.compute.amazonaws.com',
      '*',
      'a.*.example.com',
      '*.*.example.com',
    ].map((host): [string, object, RegExp] => [`the host ${host}`, { hosts: [host] }, HOST]),
    [
      '21 hosts',
      { hosts: Array.from({ length: 21 }, (_, i) => `h${i}.example.com`) },
      'hosts: must have at most 20 hosts',
    ],
    [
      'a model provider’s host',
      { hosts: ['api.openai.com'] },
      'hosts: api.openai.com is reached through the model gateway, with the secret OPENAI_API_KEY',
    ],
    [
      'a model provider’s key',
      { name: 'ANTHROPIC_API_KEY' },
      'hosts: agents never get the value of ANTHROPIC_API_KEY, the model gateway inserts it',
    ],
    ['a variable', { type: 'variable' }, 'hosts: a variable cannot have hosts, because its value is shown'],
    ...['1234567', 'x'.repeat(8193), 'schlüssel', 'two\nlines', ' 12345678', '12345678 '].map(
      (value): [string, object, RegExp] => [
        `the value ${JSON.stringify(value.slice(0, 12))}`,
        { value },
        /^value: must have 8 to /,
      ],
    ),
    ['another way', { via: { as: 'cookie' } }, 'via.as: must be bearer, basic, header or query'],
    ['a header without a name', { via: { as: 'header' } }, 'via.name: is required'],
    ['a malformed header', { via: { as: 'header', name: 'a b' } }, 'via.name: must be the name of a header'],
    ...['Host', 'content-length', 'Transfer-Encoding', 'Proxy-Authorization', 'Connection'].map(
      (name): [string, object, RegExp] => [
        `the header ${name}`,
        { via: { as: 'header', name } },
        /^via.name: must be a header that /,
      ],
    ),
    [
      'a malformed parameter',
      { via: { as: 'query', name: 'a&b' } },
      'via.name: must be the name of a query parameter',
    ],
    ['a name for bearer', { via: { as: 'bearer', name: 'X' } }, /^via: has no name/],
    ['via without hosts', { hosts: [], via: { as: 'basic' } }, 'via: needs hosts'],
  ]
  for (const [what, body, message] of refused)
    it(`a secret with hosts returns 400 for ${what}`, async () => {
      const { id } = await create()
      assertError(
        await api.post(SECRETS, { name: 'REFUSED', value: VALUE, hosts: HOSTS, ...body }),
        400,
        message,
      )
      if (!('name' in body || 'type' in body))
        assertError(await api.put(`${SECRETS}/${id}`, { value: VALUE, ...body }), 400, message)
    })

  it('a variable or a model provider’s key gets no hosts by a change', async () => {
    for (const given of [{ type: 'variable' }, { name: 'XAI_API_KEY' }]) {
      const { id } = await create({ hosts: undefined, ...given })
      assertError(await api.put(`${SECRETS}/${id}`, { value: VALUE, hosts: HOSTS }), 400, /^hosts: /)
    }
  })
})

describe('brokered secrets of an agent', () => {
  it('an egress proxy gets the attached secrets with hosts, by the agent’s credential only', async () => {
    const [agent, other] = [await startedAgent(), await startedAgent()]
    const [brokered, plain] = [await create({ via: { as: 'basic' } }), await create({ hosts: undefined })]
    const unattached = await create()
    await attach(agent, brokered.id, plain.id)
    await attach(other, unattached.id)
    const placeholder = await placeholderOf(brokered.id)
    assert.match(placeholder as string, /^ghp_[A-Z][a-z]\d[a-z][A-Z][a-z]\d/)
    const given = { placeholder, value: VALUE, hosts: HOSTS, via: { as: 'basic' } }
    const [ofAgent, ofOther, byAddress] = await secretsFor(agent.client, other.client, {
      ...agent.client,
      credential: '',
    })
    assert.deepEqual([ofAgent, ofOther?.length, byAddress], [[given], 1, []])
    await api.delete(`${agent.path}/secrets/${brokered.id}`)
    assert.deepEqual(await secretsFor(agent.client), [[]])
  })

  it('a new value of the same shape is used at once, under the same placeholder', async () => {
    const agent = await startedAgent()
    const { id } = await create()
    await attach(agent, id)
    await start(agent, id)
    const placeholder = await placeholderOf(id)
    const value = VALUE.replace('Ab3d', 'Zy9x')
    await change(id, { value })
    assert.deepEqual(await secretsFor(agent.client), [
      [{ placeholder, value, hosts: HOSTS, via: { as: 'bearer' } }],
    ])
    assert.deepEqual(await stateIn(agent, id), { readable: false, synced: true })
  })

  it('a value of another shape gets another placeholder, with the next restart', async () => {
    const agent = await startedAgent()
    const { id } = await create()
    await attach(agent, id)
    await start(agent, id)
    const former = await placeholderOf(id)
    for (const value of ['xoxb-123456789012', former as string]) {
      await change(id, { value })
      assert.notEqual(await placeholderOf(id), former)
      assert.notEqual(await placeholderOf(id), value)
    }
    assert.deepEqual(await stateIn(agent, id), { readable: false, synced: false })
    await start(agent, id)
    assert.deepEqual(await stateIn(agent, id), { readable: false, synced: true })
  })

  it('an agent that was started before a secret had hosts can read it until a restart', async () => {
    const agent = await startedAgent()
    const { id } = await create({ hosts: undefined })
    await attach(agent, id)
    await start(agent, id)
    assert.deepEqual(await stateIn(agent, id), { readable: true, synced: true })
    await change(id, { value: VALUE, hosts: HOSTS })
    await change(id, { value: VALUE })
    assert.deepEqual(await stateIn(agent, id), { readable: true, synced: false })
    await start(agent, id)
    assert.deepEqual(await stateIn(agent, id), { readable: false, synced: true })
    await change(id, { value: VALUE, hosts: null })
    assert.deepEqual(await stateIn(agent, id), { readable: true, synced: false })
  })

  it('an agent as a process can read a secret with hosts, and needs a restart for a new value', async () => {
    const agent = await startedAgent({ isProcess: true })
    const { id } = await create()
    await attach(agent, id)
    await start(agent, id)
    assert.deepEqual(await stateIn(agent, id), { readable: true, synced: true })
    await change(id, { value: VALUE.replace('Ab3d', 'Zy9x') })
    assert.deepEqual(await stateIn(agent, id), { readable: true, synced: false })
  })

  it('a secret that cannot be decrypted is left out', async () => {
    const agent = await startedAgent()
    const [broken, whole] = [await create(), await create()]
    await attach(agent, broken.id, whole.id)
    assert.equal((await secretsFor(agent.client))[0]?.length, 2)
    await sql(`UPDATE secret SET ciphertext = ciphertext || '\\x00' WHERE id = $1`, [broken.id])
    assert.equal((await secretsFor(agent.client))[0]?.length, 1)
  })
})
