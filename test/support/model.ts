/**
 * A language model on loopback for agents: OpenAI-compatible and deterministic. It replies `pong: <last user text>`.
 * Asked `run: <command>`, it calls the tool `exec` with that command, and then replies `ran: <the tool's output>`.
 * Asked `run and wait: <command>`, it makes the tool wait two minutes before the command continues in the background,
 * not 10 s. While it is obedient, it also runs commands that it reads in a tool's output, `run: <command>` in a line.
 * Asked `call <tool>: <JSON>`, it calls a tool that the engine lists only in its search, as it does those of MCP.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

export const MODEL = 'pong-1'
export const MODEL_KEY = 'model-key'

export interface ModelServer {
  /** For BERTH_MODEL_URL, ending in /v1. */
  readonly url: string
  /** Settings of Berth with which all agents use it. */
  readonly env: { BERTH_MODEL_URL: string; BERTH_MODEL: string; BERTH_MODEL_KEY: string }
  /** Requests so far, oldest first. */
  readonly requests: readonly ModelRequest[]
  /** While set, it handles all requests for a reply. */
  refusal: Refusal | undefined
  /** Whether it follows what tools return, as a model does that mistakes content for instructions. */
  isObedient: boolean
  /** The tokens that each reply reports. */
  usage: { prompt_tokens: number; completion_tokens: number }
  stop(): Promise<void>
}

export interface ModelRequest {
  model: string
  /** The key that it came with. */
  key: string | undefined
  /** The last text of the user. */
  text: string
}

interface Refusal {
  status: number
  message: string
  headers?: Record<string, string>
}

interface Message {
  role: string
  content?: string | { type: string; text?: string }[] | null
}
interface Completion {
  model: string
  stream?: boolean
  messages: Message[]
  tools?: { function: { name: string } }[]
}
type Reply = { text: string } | { tool: { name: string; arguments: string } }

/**
 * Starts a model on 127.0.0.1. A request without the key gets 401.
 * @param options.port a free port by default. @param options.isOpen accepts requests with any key or none, as local
 *   servers do.
 */
export async function startModel({ port: asked = 0, isOpen = false } = {}): Promise<ModelServer> {
  const requests: ModelRequest[] = []
  const server = createServer((request, response) => {
    answer(request, response, requests, { ...model, isOpen }).catch((error) => {
      response.destroy()
      console.error(`model: ${error}`)
    })
  })
  await new Promise<void>((resolve, reject) =>
    server.once('error', reject).listen(asked, '127.0.0.1', resolve),
  )
  const { port } = server.address() as AddressInfo
  const url = `http://127.0.0.1:${port}/v1`
  const model: ModelServer = {
    url,
    env: { BERTH_MODEL_URL: url, BERTH_MODEL: MODEL, BERTH_MODEL_KEY: MODEL_KEY },
    requests,
    refusal: undefined,
    isObedient: false,
    usage: { prompt_tokens: 10, completion_tokens: 5 },
    async stop() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
  return model
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  requests: ModelRequest[],
  {
    refusal,
    isObedient,
    usage: said,
    isOpen,
  }: Pick<ModelServer, 'refusal' | 'isObedient' | 'usage'> & { isOpen: boolean },
): Promise<void> {
  const key = request.headers.authorization?.replace(/^Bearer /, '')
  if (!isOpen && key !== MODEL_KEY)
    return json(response, 401, { error: { message: 'wrong key', type: 'invalid_request_error' } })
  const path = request.url?.replace(/^\/berth/, '')
  if (path === '/v1/models')
    return json(response, 200, { object: 'list', data: [{ id: MODEL, object: 'model' }] })
  if (path !== '/v1/chat/completions') return json(response, 404, { error: { message: 'no such path' } })
  const body: Completion = JSON.parse(await text(request))
  requests.push({ model: body.model, key, text: lastOfUser(body.messages) })
  if (refusal) {
    for (const [name, value] of Object.entries(refusal.headers ?? {})) response.setHeader(name, value)
    return json(response, refusal.status, { error: { message: refusal.message, type: 'refused' } })
  }
  const reply = replyTo(body, isObedient)
  const usage = { ...said, total_tokens: said.prompt_tokens + said.completion_tokens }
  if (body.stream) stream(response, body.model, reply, usage)
  else
    json(response, 200, {
      ...frame(body.model),
      object: 'chat.completion',
      choices: [choice('message', reply)],
      usage,
    })
}

function replyTo({ messages, tools }: Completion, isObedient: boolean): Reply {
  const said = lastOfUser(messages)
  const result = messages.slice(messages.findLastIndex(isOfUser)).findLast(({ role }) => role === 'tool')
  const order = result && isObedient ? /^run: .+/m.exec(contentOf(result))?.[0] : undefined
  if (result && !order) return { text: `ran: ${contentOf(result)}` }
  const [, wait, command] = /^run( and wait)?: (.+)/.exec(order ?? said) ?? []
  const has = (name: string) => tools?.some((tool) => tool.function.name === name)
  if (command && has('exec'))
    return {
      tool: { name: 'exec', arguments: JSON.stringify({ command, ...(wait && { yieldMs: 120_000 }) }) },
    }
  const [, id, json] = /^call (\w+): (.+)/.exec(said) ?? []
  if (id && json && has('tool_call'))
    return { tool: { name: 'tool_call', arguments: JSON.stringify({ id, args: JSON.parse(json) }) } }
  return { text: `pong: ${said}` }
}

/** The engine adds user messages that expect no reply. */
const isOfUser = (message: Message): boolean =>
  message.role === 'user' && !contentOf(message).startsWith('<<<BEGIN_OPENCLAW')

/** The last text of the user, without the time before it and the engine's notes below it. */
function lastOfUser(messages: Message[]): string {
  const message = messages.findLast(isOfUser)
  const [said = ''] = (message ? contentOf(message) : '').split('\n\nRuntime: ')
  return said.replace(/^\[[^\]]+\] /, '')
}

function contentOf({ content }: Message): string {
  if (typeof content === 'string') return content
  return (content ?? []).map((part) => part.text ?? '').join('')
}

const frame = (model: string) => ({ id: 'chatcmpl-1', created: 1_700_000_000, model })

function choice(field: 'message' | 'delta', reply: Reply) {
  const call = 'tool' in reply && { index: 0, id: 'call_1', type: 'function', function: reply.tool }
  return {
    index: 0,
    [field]: {
      role: 'assistant',
      ...('text' in reply ? { content: reply.text } : { content: null, tool_calls: [call] }),
    },
    finish_reason: field === 'delta' ? null : finishOf(reply),
  }
}

const finishOf = (reply: Reply) => ('text' in reply ? 'stop' : 'tool_calls')

/** Words one by one, so that streaming by intermediaries can be observed. */
function stream(response: ServerResponse, model: string, reply: Reply, usage: ModelServer['usage']): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  const send = (rest: object) =>
    response.write(
      `data: ${JSON.stringify({ ...frame(model), object: 'chat.completion.chunk', ...rest })}\n\n`,
    )
  const parts: Reply[] = 'text' in reply ? reply.text.split(/(?<= )/).map((text) => ({ text })) : [reply]
  for (const part of parts) send({ choices: [choice('delta', part)] })
  send({ choices: [{ index: 0, delta: {}, finish_reason: finishOf(reply) }] })
  send({ choices: [], usage })
  response.end('data: [DONE]\n\n')
}

function json(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}
