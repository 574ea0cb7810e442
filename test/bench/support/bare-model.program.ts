/**
 * A model server: it answers at once, or streams `max_tokens` words, one every 20 ms. Sends its address to its parent
 * process.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

const EVENT_MS = 20

const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 }
const frame = { id: 'chatcmpl-1', created: 1_700_000_000, model: 'm' }
const event = (rest: object) =>
  `data: ${JSON.stringify({ ...frame, object: 'chat.completion.chunk', ...rest })}\n\n`
const WORD = event({ choices: [{ index: 0, delta: { content: 'word ' }, finish_reason: null }] })
const END = `${event({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] })}${event({ choices: [], usage })}data: [DONE]\n\n`
const message = { role: 'assistant', content: 'pong' }
const WHOLE = JSON.stringify({
  ...frame,
  object: 'chat.completion',
  choices: [{ index: 0, message, finish_reason: 'stop' }],
  usage,
})

const server = createServer(async (req, res) => {
  if (req.method !== 'POST') return res.writeHead(404).end()
  const chunks: Buffer[] = []
  for await (const chunk of req) chunks.push(chunk)
  const { stream, max_tokens: words } = JSON.parse(Buffer.concat(chunks).toString())
  if (!stream) {
    res.writeHead(200, { 'content-type': 'application/json', 'content-length': WHOLE.length })
    return res.end(WHOLE)
  }
  res.writeHead(200, { 'content-type': 'text/event-stream' })
  let left = words
  const timer = setInterval(() => {
    if (--left > 0) return void res.write(WORD)
    clearInterval(timer)
    res.end(END)
  }, EVENT_MS)
  res.write(WORD)
  res.on('close', () => clearInterval(timer))
})
server.listen(0, '127.0.0.1', () => {
  process.send?.(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
})
process.on('disconnect', () => process.exit())
