/** The time that the model gateway adds to a model server on loopback, which is called directly in turns with it. */
import { Agent, type IncomingMessage, request } from 'node:http'
import type { TestContext } from 'node:test'
import { startModelGateway, VIRTUAL_KEY } from '../support/model-gateway.ts'
import { quantile } from './support/numbers.ts'
import { print, type Result } from './support/report.ts'
import { ms } from './support/time.ts'

export const title = 'Model gateway against the same model server, called directly'

/** As many bytes as the engine sends for a short message. */
const BODY_BYTES = 44_000
const WARM_UP = 100
const REQUESTS = 400
const STREAMS = 200
const EVENTS = 50
const EVENT_MS = 20
const USAGE = { prompt_tokens: 10, completion_tokens: 5 }
const EVENT = `data: ${JSON.stringify({ choices: [{ delta: { content: 'word ' } }] })}\n\n`
const END = `data: ${JSON.stringify({ choices: [], usage: USAGE })}\n\ndata: [DONE]\n\n`

export async function bench(): Promise<Result[]> {
  await using ending = new AsyncDisposableStack()
  const t = { after: (close: () => Promise<void>) => ending.defer(close) } as unknown as TestContext
  const { url, model } = await startModelGateway(t, async (res, { body }) => {
    if (!body.includes('"stream":true'))
      return res.end(JSON.stringify({ choices: [{ message: { content: 'pong' } }], usage: USAGE }))
    res.writeHead(200, { 'content-type': 'text/event-stream' })
    for (let i = 0; i < EVENTS; i++) {
      res.write(EVENT)
      await new Promise((resolve) => setTimeout(resolve, EVENT_MS))
    }
    return res.end(END)
  })
  const agent = new Agent({ keepAlive: true })
  ending.defer(() => agent.destroy())
  const ways = { berth: `${url}/berth/v1/chat/completions`, bare: `${model}/v1/chat/completions` }
  const ask = (way: keyof typeof ways, isStream = false) => call(agent, ways[way], isStream)

  const times = { berth: [] as number[], bare: [] as number[] }
  for (let i = 0; i < WARM_UP + REQUESTS; i++)
    for (const way of ['berth', 'bare'] as const) {
      const { total } = await ask(way)
      if (i >= WARM_UP) times[way].push(total)
    }
  const first = { berth: [] as number[], bare: [] as number[] }
  for (let i = 0; i < 20; i++)
    for (const way of ['berth', 'bare'] as const) first[way].push((await ask(way, true)).firstByte)
  const streams = { berth: 0, bare: 0 }
  for (const way of ['bare', 'berth'] as const) {
    const began = performance.now()
    await Promise.all(Array.from({ length: STREAMS }, () => ask(way, true)))
    streams[way] = performance.now() - began
  }
  const added = (what: string, all: typeof times, q: number): Result => {
    const berth = quantile(all.berth, q)
    const bare = quantile(all.bare, q)
    return {
      what,
      berth: `${ms(berth)} (${ms(berth - bare)} more)`,
      bare: ms(bare),
      ratio: berth / bare,
    }
  }
  return [
    added('request, median', times, 0.5),
    added('request, p99', times, 0.99),
    added('first byte of a stream, median', first, 0.5),
    {
      what: `${STREAMS} streams at once`,
      berth: ms(streams.berth),
      bare: ms(streams.bare),
      ratio: streams.berth / streams.bare,
      goal: { atMost: 1.5 },
    },
  ]
}

/** Times until the first byte of the body and until its end, in ms. */
async function call(agent: Agent, url: string, isStream: boolean) {
  const padding = 'x'.repeat(BODY_BYTES)
  const body = JSON.stringify({
    model: 'm',
    max_tokens: 10,
    stream: isStream,
    messages: [{ role: 'user', content: padding }],
  })
  const began = performance.now()
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const headers = { authorization: `Bearer ${VIRTUAL_KEY}`, 'content-length': Buffer.byteLength(body) }
    request(url, { method: 'POST', agent, headers }, resolve).on('error', reject).end(body)
  })
  let firstByte: number | undefined
  let text = ''
  for await (const chunk of response) {
    firstByte ??= performance.now() - began
    text += chunk
  }
  if (response.statusCode !== 200 || (isStream && !text.endsWith('[DONE]\n\n'))) throw new Error(text)
  return { firstByte: firstByte ?? Number.NaN, total: performance.now() - began }
}

if (import.meta.main) print(title, await bench())
