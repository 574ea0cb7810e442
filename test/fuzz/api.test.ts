/**
 * Random requests to every route of `/openapi.json`. Whatever comes in, the answer is one that the document
 * declares, no error is the server's own fault, what is refused changes nothing, and the server is well afterwards.
 *
 * `BERTH_FUZZ_SEED` replays a run, `BERTH_FUZZ_SECONDS` bounds it (20).
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { insertAgent } from '../contract/agents/rows.ts'
import { inlineCid, openContext } from '../contract/context.ts'
import { assertError, type Client, type Reply } from '../support/client.ts'
import { until } from '../support/processes.ts'
import { type FuzzRequest, requests } from './arbitrary.ts'
import { createPool, createWorkspace } from './pool.ts'
import { stateOf } from './state.ts'

const seed = Number(process.env.BERTH_FUZZ_SEED ?? Date.now() % 2 ** 31)
const seconds = Number(process.env.BERTH_FUZZ_SECONDS ?? 20)

const context = await openContext()
const { anonymous } = context
const own = await createWorkspace(context)
const { api, created } = own
// Many: some requests delete one.
const agents = await Promise.all(Array.from({ length: 200 }, () => insertAgent(context, own)))
const viewer = await own.member('viewer')
const callers: Record<FuzzRequest['caller'], Client> = {
  admin: api,
  viewer: await created({ user: viewer.name }),
  nobody: anonymous,
  agent: agents[0]?.gateway ?? anonymous,
  garbage: anonymous.as('garbage'),
}
const agentId = agents.map(({ agentId }) => agentId)
const request = requests(anonymous.document, { ...(await createPool(api)), agentId })

/** Sends it, and holds the answer against the document. */
const send = ({ caller, method, path, headers, body }: FuzzRequest): Promise<Reply> =>
  callers[caller].request(method, path, {
    headers,
    body: method === 'GET' || method === 'HEAD' ? undefined : body,
  })
const within = (part: number) => ({
  seed,
  numRuns: 1_000_000,
  interruptAfterTimeLimit: part * seconds * 1000,
  markInterruptAsFailure: false,
})

test('no request brings the server out of its contract', async (t) => {
  t.diagnostic(`replay with BERTH_FUZZ_SEED=${seed}`)
  const statuses = new Map<number, number>()
  await fc.assert(
    fc.asyncProperty(fc.array(request, { minLength: 1, maxLength: 8 }), async (batch) => {
      for (const { status, body } of await Promise.all(batch.map(send))) {
        // The agents are rows without containers.
        assert.ok(status < 500 || isNotRunning(body), `status ${status}`)
        statuses.set(status, (statuses.get(status) ?? 0) + 1)
      }
    }),
    within(0.7),
  )
  t.diagnostic(`answers by status: ${JSON.stringify(Object.fromEntries(statuses))}`)
  for (const status of [200, 400, 401, 403, 404]) assert.ok(statuses.get(status), `${status} was never met`)
})

test('a request that is refused changes nothing', async (t) => {
  let refused = 0
  await fc.assert(
    fc.asyncProperty(request, async (one) => {
      const before = await stateOf(context, own.id)
      const { status } = await send(one)
      if (status < 400) return
      refused++
      assert.deepEqual(await stateOf(context, own.id), before, `status ${status}`)
    }),
    within(0.3),
  )
  t.diagnostic(`${refused} requests were refused`)
  assert.ok(refused > 20)
})

test('the server is well after the fuzzing', async () => {
  // Its parts have two seconds each to answer, behind all that the fuzzing has left to do.
  await until('it is ready', async () => (await anonymous.get('/readyz')).body.status === 'ok')
  const { record } = await api.pin({ cid: `${inlineCid('after the fuzz')}` }, { wait: 120 })
  assert.equal(record.status, 'pinned')
  assertError(await anonymous.get('/v3/files/public'), 401, /^Missing Authorization header/)
})

const isNotRunning = (body: unknown) =>
  (body as { error?: unknown } | undefined)?.error === 'The agent is not running'
