import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { RequestError } from '../../typescript/src/index.ts'
import { EXIT, explain, UsageError } from './errors.ts'

const refused = (status: number, headers: Record<string, string> = {}) =>
  explain(new RequestError(status, 'no', new Headers(headers)), 'https://b.example')

describe('exit codes and advice', () => {
  const codes: [number, number][] = [
    ...[
      [400, 1],
      [401, 3],
      [402, 4],
      [403, 4],
      [404, 5],
      [409, 6],
      [422, 6],
      [429, 7],
    ],
    ...[
      [500, 1],
      [501, 1],
      [503, 7],
      [507, 7],
    ],
  ] as [number, number][]
  for (const [status, exit] of codes)
    it(`status ${status} ends with ${exit}`, () => assert.equal(refused(status).exit, exit))
  it('a busy Berth says when to try again, and where its log is', () => {
    const { advice } = refused(503, { 'retry-after': '5', 'x-request-id': 'r1' })
    assert.equal(advice, 'try again in 5 s; the log of https://b.example has more under r1')
  })
  it('a lost connection is named by its cause', () => {
    const cause = Object.assign(new Error(), { code: 'ECONNREFUSED' })
    const { message, advice, exit } = explain(new TypeError('fetch failed', { cause }), 'https://b.example')
    assert.equal(message, 'cannot reach https://b.example (ECONNREFUSED)')
    assert.match(advice ?? '', /is Berth running/)
    assert.equal(exit, EXIT.unavailable)
    const untrusted = Object.assign(new Error(), { code: 'DEPTH_ZERO_SELF_SIGNED_CERT' })
    const { advice: trust } = explain(
      new TypeError('fetch failed', { cause: untrusted }),
      'https://b.example',
    )
    assert.match(trust ?? '', /NODE_EXTRA_CA_CERTS/)
  })
  it('a wrong command line ends with 2, a bug shows where it is', () => {
    assert.equal(explain(new UsageError('x'), undefined).exit, EXIT.usage)
    assert.match(explain(new TypeError('x is not a function'), undefined).message, /errors\.test\.ts/)
  })
})
