import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { StoredEvent } from './event.ts'
import { EVENT_TYPES, type EventType, eventTypes } from './event-types.ts'
import { matchesType, maySee, typePattern, type Viewer } from './visibility.ts'

const HERE = 'here'
const OWNER: Viewer = { workspaceId: HERE, userId: 'me', role: 'owner', scopes: ['admin'] }

const eventOf = (type: EventType, data = eventTypes[type].example): StoredEvent => ({
  id: '1',
  type,
  createdAt: new Date(),
  workspaceId: HERE,
  resource: { type: eventTypes[type].resource, id: 'x' },
  data,
})
const seenBy = (viewer: Viewer) => EVENT_TYPES.filter((type) => maySee(viewer, eventOf(type)))
const startingWith = (...starts: string[]) =>
  EVENT_TYPES.filter((type) => starts.some((start) => type.startsWith(start)))

describe('visibility of events', () => {
  it('an owner with admin sees all events of the workspace, and none of another', () => {
    assert.deepEqual(seenBy(OWNER), EVENT_TYPES)
    assert.deepEqual(seenBy({ ...OWNER, workspaceId: 'there' }), [])
  })

  it('a key for files sees only file events', () => {
    assert.deepEqual(
      seenBy({ ...OWNER, scopes: ['org:files:read'] }),
      startingWith('file.', 'pin.', 'quota.', 'swap.'),
    )
    assert.deepEqual(seenBy({ ...OWNER, scopes: ['org:groups:write'] }), startingWith('group.'))
  })

  it('an operation event is visible to readers of the operation’s subject', () => {
    const agents = eventOf('operation.progress')
    const files = eventOf('operation.progress', { ...agents.data, kind: 'pin.add' })
    const viewer = { ...OWNER, scopes: ['org:files:read'] }
    assert.deepEqual([maySee(viewer, agents), maySee(viewer, files)], [false, true])
  })

  it('a domain event is visible to readers of its agents or gateways', () => {
    const [agents, gateways] = ['org:agents:read', 'org:gateways:read'].map((scope) => ({
      ...OWNER,
      scopes: [scope],
    })) as [Viewer, Viewer]
    const ofGateway = eventOf('domain.verified', { agentId: null, customDomain: 'example.com' })
    assert.deepEqual([maySee(agents, eventOf('domain.verified')), maySee(agents, ofGateway)], [true, false])
    assert.deepEqual(
      [maySee(gateways, eventOf('domain.verified')), maySee(gateways, ofGateway)],
      [false, true],
    )
  })

  it('owners with admin see member, invitation and key events, and users those of their keys', () => {
    const own = startingWith('key.', 'member.', 'invitation.')
    const others: Viewer[] = [
      { ...OWNER, role: 'member' },
      { ...OWNER, scopes: ['org:write'] },
    ]
    for (const viewer of others) assert.ok(!seenBy(viewer).some((type) => own.includes(type)))
    const mine = eventOf('key.created', { name: 'ci', userId: 'me', scopes: [] })
    for (const viewer of others) assert.ok(maySee(viewer, mine))
    assert.ok(!maySee({ ...OWNER, scopes: ['org:files:read'] }, mine))
  })

  it("an agent's own token sees only its agent's events", () => {
    const token = { by: 'platform', fingerprint: '', isWide: true } as const
    const viewer: Viewer = {
      ...OWNER,
      scopes: ['org:agents:write'],
      agent: { agentId: 'x1a2b3c4', ...token },
    }
    assert.deepEqual(
      seenBy(viewer),
      startingWith('agent.', 'egress.', 'model.', 'snapshot.', 'domain.', 'channel.', 'task.', 'operation.'),
    )
    assert.deepEqual(seenBy({ ...viewer, agent: { agentId: 'x0000000', ...token } }), [])
  })

  it('an event of an unknown type is visible to nobody', () => {
    assert.ok(!maySee(OWNER, { ...eventOf('file.created'), type: 'file.burnt' }))
    assert.ok(!maySee(OWNER, { ...eventOf('file.created'), type: 'constructor' }))
  })
})

describe('a pattern of types', () => {
  it('a pattern matches one type, all types of a resource, or all types', () => {
    assert.ok(matchesType('file.*', 'file.created') && matchesType('*', 'file.created'))
    assert.ok(matchesType('file.created', 'file.created'))
    assert.ok(!matchesType('file.created', 'file.updated') && !matchesType('pin.*', 'file.created'))
  })

  it('a pattern for an unknown type is rejected', () => {
    for (const pattern of ['', 'file', 'file.', '*.created', 'fil.*', 'file.burnt', 'FILE.created'])
      assert.equal(typePattern.safeParse(pattern).success, false, pattern)
    for (const pattern of ['*', 'file.*', 'file.created'])
      assert.equal(typePattern.safeParse(pattern).success, true, pattern)
  })
})
