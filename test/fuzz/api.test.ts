/**
 * Random requests to every route of `/openapi.json`: the document declares each response, no error is a server failure,
 * refused requests change nothing, and the server stays healthy.
 *
 * `BERTH_FUZZ_SEED` replays a run, `BERTH_FUZZ_SECONDS` limits it (default 5; CI uses 20).
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
const seconds = Number(process.env.BERTH_FUZZ_SECONDS ?? 5)

const context = await openContext()
const { anonymous } = context
const own = await createWorkspace(context)
const { api, created } = own
// Many, because some requests delete one.
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

const underWay = new Set<Promise<unknown>>()
/** Sends the request, and checks the response against the document. */
function send({ caller, method, path, headers, body }: FuzzRequest): Promise<Reply> {
  const reply = callers[caller].request(method, path, {
    headers,
    body: method === 'GET' || method === 'HEAD' ? undefined : body,
  })
  const ended = reply.catch(() => {}).finally(() => underWay.delete(ended))
  underWay.add(ended)
  return reply
}

/** Runs for a part of the time, and on a slow machine until it has seen enough. */
async function explore<T>(property: fc.IAsyncProperty<T>, part: number, isEnough: () => boolean) {
  const interruptAfterTimeLimit = part * seconds * 1000
  await fc.assert(property, {
    seed,
    numRuns: 1_000_000,
    interruptAfterTimeLimit,
    markInterruptAsFailure: false,
  })
  for (let more = 1; more <= 50 && !isEnough(); more++)
    await fc.assert(property, { seed: seed + more, numRuns: 20 })
  // An interrupted run does not wait for its requests, which may still change something.
  await Promise.all(underWay)
}

test('no request makes the server break its contract', async (t) => {
  t.diagnostic(`replay with BERTH_FUZZ_SEED=${seed}`)
  const statuses = new Map<number, number>()
  const needed = [200, 400, 401, 403, 404]
  await explore(
    fc.asyncProperty(fc.array(request, { minLength: 1, maxLength: 8 }), async (batch) => {
      for (const { status, body } of await Promise.all(batch.map(send))) {
        // The agents are only rows, without containers.
        assert.ok(status < 500 || isNotRunning(body), `status ${status}`)
        statuses.set(status, (statuses.get(status) ?? 0) + 1)
      }
    }),
    0.7,
    () => needed.every((status) => statuses.has(status)),
  )
  t.diagnostic(`answers by status: ${JSON.stringify(Object.fromEntries(statuses))}`)
  for (const status of needed) assert.ok(statuses.get(status), `status ${status} never occurred`)
})

test('refused requests change nothing', async (t) => {
  let refused = 0
  await explore(
    fc.asyncProperty(request, async (one) => {
      const before = await stateOf(context, own.id)
      const { status } = await send(one)
      if (status < 400) return
      refused++
      assert.deepEqual(await stateOf(context, own.id), before, `status ${status}`)
    }),
    0.3,
    () => refused > 20,
  )
  t.diagnostic(`${refused} requests were refused`)
  assert.ok(refused > 20)
})

test('the server is healthy after the fuzzing', async () => {
  // Each part has two seconds to respond, after the remaining work of the fuzzing.
  await until('it is ready', async () => (await anonymous.get('/readyz')).body.status === 'ok')
  const { record } = await api.pin({ cid: `${inlineCid('after the fuzz')}` }, { wait: 120 })
  assert.equal(record.status, 'pinned')
  assertError(await anonymous.get('/v3/files/public'), 401, /^Missing Authorization header/)
})

const isNotRunning = (body: unknown) =>
  (body as { error?: unknown } | undefined)?.error === 'The agent is not running'
