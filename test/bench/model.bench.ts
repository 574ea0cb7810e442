/**
 * The time that the model gateway adds to a model server on loopback. Calls go in turns directly and through a Berth with
 * a price and a budget, and then through LiteLLM if it starts. All of them are processes of their own.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { Agent, type IncomingMessage, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createPool } from '../../src/db/pool.ts'
import { createLogger } from '../../src/log.ts'
import { insertModelAgent } from '../support/model-agent.ts'
import { startStack } from '../support/stack.ts'
import { startLitellm } from './support/litellm.ts'
import { median, quantile } from './support/numbers.ts'
import { print, type Result } from './support/report.ts'
import { ms, time } from './support/time.ts'

export const title = 'Model gateway against the same model server, called directly'

const KEY = 'sk-bench'
/** As many bytes as the engine sends for a short message. */
const BODY_BYTES = 44_000
const WARM_UP = 300
const REQUESTS = 2000
const FIRST_BYTES = 100
const STREAMS = 200
/** The length of each of them, at 50 words a second. */
const WORDS = 50
const ROUNDS = 3
/** LiteLLM has a round where others have this many. */
const SLOWER = 4

type Way = 'bare' | 'berth' | 'litellm'
type Ways = Partial<Record<Way, string>>
type Times = Record<Way, number[]>

export async function bench(): Promise<Result[]> {
  await using ending = new AsyncDisposableStack()
  const dir = await mkdtemp(join(tmpdir(), 'berth-bench-'))
  ending.defer(() => rm(dir, { recursive: true, force: true }))
  const server = fork(new URL('./support/bare-model.program.ts', import.meta.url))
  ending.defer(() => void server.kill())
  const [url] = (await once(server, 'message')) as [string]
  const model = `${url}/v1`
  const ways: Ways = { bare: model, berth: await startBerth(model, ending) }
  try {
    ways.litellm = await startLitellm(dir, { model, key: KEY, stack: ending })
  } catch (error) {
    console.error('LiteLLM does not start, so it is left out:', error)
  }
  const agent = new Agent({ keepAlive: true })
  ending.defer(() => agent.destroy())
  const call = (way: Way, words?: number) => ask(agent, `${ways[way]}/chat/completions`, words)

  const totals = await inTurns(ways, WARM_UP, REQUESTS, async (way) => (await call(way)).total)
  const firsts = await inTurns(ways, 10, FIRST_BYTES, async (way) => (await call(way, 1)).firstByte)
  const streams = await inTurns(ways, 1, ROUNDS, (way) =>
    time(() => Promise.all(Array.from({ length: STREAMS }, () => call(way, WORDS)))),
  )
  const many = `${STREAMS} streams at once`
  const goal = { atMost: 1.2 }
  return [
    ...added('a request, median', totals, 0.5, 1),
    ...added('a request, 99th percentile', totals, 0.99, 10),
    ...added('the first byte of a stream, median', firsts, 0.5, 2),
    { ...compare(many, streams, 'bare'), goal },
    ...(ways.litellm ? [compare(`${many}, beside LiteLLM`, streams, 'litellm')] : []),
  ]
}

/** @returns the base URL of its model gateway. */
async function startBerth(model: string, ending: AsyncDisposableStack): Promise<string> {
  const stack = await startStack({
    kind: 'embedded',
    database: 'of the run',
    env: { BERTH_MODEL_URL: model, BERTH_MODEL: 'm' },
  })
  ending.defer(() => stack.stop())
  const pool = createPool(stack.env.DATABASE_URL ?? '', 1, createLogger('bench', 'silent'))
  ending.defer(() => pool.end())
  await insertModelAgent(pool, { key: KEY, input: 1, output: 2, usdPerDay: 1e6 })
  return `http://127.0.0.1:${stack.env.BERTH_EGRESS_PORT}/berth/v1`
}

/**
 * The results of each way, without those of the warm-up. LiteLLM has fewer rounds, after the others, because it is slow
 * and works on after each response.
 */
async function inTurns(
  ways: Ways,
  warmUp: number,
  rounds: number,
  measure: (way: Way) => Promise<number>,
): Promise<Times> {
  const times: Times = { bare: [], berth: [], litellm: [] }
  for (let i = -warmUp; i < rounds; i++)
    for (const way of ['bare', 'berth'] as const) {
      const measured = await measure(way)
      if (i >= 0) times[way].push(measured)
    }
  if (ways.litellm)
    for (let i = Math.floor(-warmUp / SLOWER); i < rounds / SLOWER; i++) {
      const measured = await measure('litellm')
      if (i >= 0) times.litellm.push(measured)
    }
  return times
}

/** Compares the time that Berth adds to the model's own with the goal in ms, and with the time that LiteLLM adds. */
function added(what: string, times: Times, q: number, goalMs: number): Result[] {
  const of = (way: Way) => quantile(times[way], q) - quantile(times.bare, q)
  const [berth, litellm] = [of('berth'), of('litellm')]
  const beside = { what: `added to ${what}, beside LiteLLM`, berth: ms(berth), bare: ms(litellm) }
  return [
    {
      what: `added to ${what}`,
      berth: ms(berth),
      bare: ms(goalMs),
      ratio: berth / goalMs,
      goal: { atMost: 1 },
    },
    ...(times.litellm.length > 0 ? [{ ...beside, ratio: berth / litellm }] : []),
  ]
}

function compare(what: string, times: Times, other: Way): Result {
  const [berth, bare] = [median(times.berth), median(times[other])]
  return { what, berth: ms(berth), bare: ms(bare), ratio: berth / bare }
}

/** Times until the first byte of the body and until its end, in ms. @param words the length of a stream, if it is one. */
async function ask(agent: Agent, url: string, words?: number) {
  const messages = [{ role: 'user', content: 'x'.repeat(BODY_BYTES) }]
  const body = JSON.stringify({ model: 'm', stream: words !== undefined, max_tokens: words ?? 10, messages })
  const began = performance.now()
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const headers = {
      authorization: `Bearer ${KEY}`,
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
    }
    request(url, { method: 'POST', agent, headers }, resolve).on('error', reject).end(body)
  })
  let firstByte: number | undefined
  let text = ''
  for await (const chunk of response) {
    firstByte ??= performance.now() - began
    text += chunk
  }
  if (response.statusCode !== 200 || (words && !text.endsWith('[DONE]\n\n'))) throw new Error(text)
  return { firstByte: firstByte ?? Number.NaN, total: performance.now() - began }
}

if (import.meta.main) print(title, await bench())
