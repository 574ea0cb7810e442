import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { findSocketTarget, findTarget } from './targets.ts'

const ID = 'x0000001'
const API = `/v0/agents/${ID}`

describe('a path of an agent’s host', () => {
  it('a path of an agent’s host is short for a route of the agent', () => {
    const cases: [path: string, route: string][] = [
      ['/v0/platform/token', '/platform/token'],
      ['/v0/platform/skills/attached', '/platform/skills/attached'],
      ['/v0/status', '/status'],
      ['/v0/secrets/a%2Fb', '/secrets/a%2Fb'],
      ['/v0/channels/telegram', '/channels/telegram'],
      ['/v0/console/exec', '/console/exec'],
      ['/v0/logs', '/logs'],
    ]
    for (const [path, route] of cases)
      assert.deepEqual(findTarget('POST', path, ID), { kind: 'api', path: API + route })
    for (const path of [
      '/v0/tasks',
      '/v0/statusx',
      '/v0/agents',
      '/v0',
      '/V0/status',
      '/v0//status',
      '//v0/status',
    ])
      assert.equal(findTarget('GET', path, ID), undefined, path)
  })
  it('a path of an agent’s host may contain the agent’s id, and no other', () => {
    assert.deepEqual(findTarget('GET', API, ID), { kind: 'api', path: API })
    assert.deepEqual(findTarget('GET', `${API}/tasks`, ID), { kind: 'api', path: `${API}/tasks` })
    for (const other of ['x0000002', 'X0000001', 'x000000%31', '..', 'engines'])
      assert.deepEqual(findTarget('GET', `/v0/agents/${other}/tasks`, ID), { kind: 'foreign' }, other)
  })
  it('a path of an agent’s host is a protocol’s only if the agent offers that protocol', () => {
    const card = '/.well-known/agent-card.json'
    for (const [path, protocol, other] of [
      [card, 'a2a', 'mcp'],
      ['/a2a', 'a2a', 'mcp'],
      ['/mcp', 'mcp', 'a2a'],
    ] as const) {
      assert.deepEqual(findTarget('POST', path, ID, [protocol]), { kind: 'api', path: `${API}${path}` })
      for (const offered of [[], [other]])
        assert.equal(findTarget('POST', path, ID, offered), undefined, path)
      assert.equal(findTarget('POST', `${path}/x`, ID, [protocol]), undefined, path)
    }
  })
  it('a path of an agent’s host never leads outside its target', () => {
    const odd = fc.constantFrom(
      '..',
      '.',
      '%2e',
      '%2E%2E',
      '%2f',
      '\\',
      '//',
      'a',
      'v1',
      'exec',
      'hooks',
      'models',
    )
    const path = fc.array(odd, { maxLength: 5 }).map((parts) => parts.join('/'))
    const prefix = fc.constantFrom('/hooks/', '/v1/models/', '/v1/', '/', '/chat/')
    fc.assert(
      fc.property(prefix, path, fc.constantFrom('GET', 'POST'), (start, rest, method) => {
        const target = findTarget(method, start + rest, ID)
        if (target?.kind !== 'gateway') return
        // agentd parses the path in this way.
        const { pathname } = new URL(`http://agentd/v1/gateway${target.path}`)
        assert.equal(pathname, `/v1/gateway${target.path}`)
      }),
    )
  })
  it('a path of an agent’s host accepts WebSockets for chat and for the log', () => {
    assert.deepEqual(findSocketTarget('/', ID), { kind: 'gateway', path: '/' })
    assert.deepEqual(findSocketTarget('/chat', ID), { kind: 'gateway', path: '/' })
    assert.deepEqual(findSocketTarget('/v0/logs', ID), { kind: 'logs' })
    assert.deepEqual(findSocketTarget(`${API}/logs`, ID), { kind: 'logs' })
    assert.deepEqual(findSocketTarget('/v0/agents/x0000002/logs', ID), { kind: 'foreign' })
    for (const path of ['/v0/logs/x', '/v0/status', '/v1/models', '/hooks/x', '/chat/x'])
      assert.equal(findSocketTarget(path, ID), undefined, path)
  })
})
