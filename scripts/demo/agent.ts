/** An agent, as the demo reaches it: through the API, and on its own host. */
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { text } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'
import WebSocket from 'ws'
import { type Berth, UnexpectedAnswer } from './berth.ts'

const POLL_MS = 200

/** Its record, as far as the demo reads it. */
export interface AgentView {
  agentId: string
  name: string
  status: 'starting' | 'running' | 'not_running'
  statusReason: string | null
  agentVersion: string
  gatewayToken: string
}

/** A reply and its timing. */
export interface Reply {
  text: string
  /** Time until its first part, and until its end. */
  firstMs: number
  ms: number
}

export class DemoAgent {
  readonly id: string
  readonly #berth: Berth
  readonly #domain: string
  readonly #signal: AbortSignal
  token: string

  constructor(berth: Berth, agent: AgentView, { domain, signal }: { domain: string; signal: AbortSignal }) {
    this.id = agent.agentId
    this.token = agent.gatewayToken
    this.#berth = berth
    this.#domain = domain
    this.#signal = signal
  }

  get host(): string {
    return `${this.id}.${this.#domain}`
  }

  /** Sends a request to a path below the agent's own, with the owner's key; resolves to its JSON. */
  async call<T>(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<T> {
    const response = await this.#berth.request(method, `/v0/agents/${this.id}${path}`, {
      signal: this.#signal,
      body,
      headers,
    })
    return (await response.json()) as T
  }

  /** A file of the agent, byte by byte. */
  async readFile(path: string): Promise<Buffer> {
    const response = await this.#berth.request(
      'GET',
      `/v0/agents/${this.id}/files?path=${encodeURIComponent(path)}`,
      { signal: this.#signal },
    )
    return Buffer.from(await response.arrayBuffer())
  }

  /** Waits until the agent runs. Throws if it ends up not running. */
  async running(): Promise<AgentView> {
    for (;;) {
      const { agent } = await this.call<{ agent: AgentView }>('GET', '')
      if (agent.status === 'running') return agent
      if (agent.status === 'not_running') throw new Error(`the agent does not run: ${agent.statusReason}`)
      await delay(POLL_MS, undefined, { signal: this.#signal })
    }
  }

  /** Resolves to true if the API returns 404 for the agent. */
  async isGone(): Promise<boolean> {
    try {
      await this.call('GET', '')
      return false
    } catch (error) {
      if (error instanceof UnexpectedAnswer && error.status === 404) return true
      throw error
    }
  }

  /** Sends a message over the agent's WebSocket, like the official CLI. */
  async chat(message: string): Promise<Reply> {
    const url = new URL(this.#berth.url)
    const socket = new WebSocket(`ws://${url.host}/`, {
      headers: { host: this.host, authorization: `Bearer ${this.token}` },
    })
    const abort = () => socket.terminate()
    this.#signal.addEventListener('abort', abort, { once: true })
    try {
      return await converse(socket, this.token, message)
    } finally {
      this.#signal.removeEventListener('abort', abort)
      socket.terminate()
    }
  }

  /** Sends a message over HTTP, in the form of OpenAI's chat completions, streamed. */
  async completion(message: string): Promise<Reply> {
    const began = performance.now()
    const response = await this.onHost('POST', '/v1/chat/completions', {
      model: 'openclaw/default',
      user: 'demo',
      stream: true,
      messages: [{ role: 'user', content: message }],
    })
    if (response.statusCode !== 200) throw new Error(`chat: ${response.statusCode} ${await text(response)}`)
    let buffered = ''
    let reply = ''
    let firstMs = 0
    for await (const chunk of response.setEncoding('utf8') as AsyncIterable<string>) {
      const lines = (buffered + chunk).split('\n')
      buffered = lines.pop() ?? ''
      for (const line of lines) {
        if (!line.startsWith('data: ') || line === 'data: [DONE]') continue
        const delta = JSON.parse(line.slice('data: '.length)).choices?.[0]?.delta?.content ?? ''
        if (delta) firstMs ||= performance.now() - began
        reply += delta
      }
    }
    return { text: reply, firstMs, ms: performance.now() - began }
  }

  /**
   * A request to the agent's own host with its gateway token. Node cannot resolve the name, so the Host header carries
   * it.
   */
  async onHost(
    method: string,
    path: string,
    body?: unknown,
    token: string = this.token,
  ): Promise<IncomingMessage> {
    const { hostname, port } = new URL(this.#berth.url)
    const sent = request({
      host: hostname,
      port,
      method,
      path,
      agent: false,
      signal: this.#signal,
      headers: { host: this.host, authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    })
    sent.end(body === undefined ? undefined : JSON.stringify(body))
    const [response] = (await once(sent, 'response')) as [IncomingMessage]
    return response
  }
}

interface Frame {
  type: 'event' | 'res'
  event?: string
  id?: string
  ok?: boolean
  error?: { message: string }
  payload?: { state?: string; message?: { content?: { text?: string }[] } }
}

/** Protocol 3, which public clients speak; Berth upgrades it to the engine's own. */
async function converse(socket: WebSocket, token: string, message: string): Promise<Reply> {
  const frames: Frame[] = []
  let wake = () => {}
  let ended: Error | undefined
  socket.on('message', (data) => {
    frames.push(JSON.parse(String(data)))
    wake()
  })
  socket.on('error', (error) => {
    ended = error
    wake()
  })
  socket.on('close', (code, reason) => {
    ended ??= new Error(`the chat was closed: ${code} ${reason}`)
    wake()
  })
  const next = async (wanted: (frame: Frame) => boolean): Promise<Frame> => {
    for (;;) {
      const frame = frames.shift()
      if (frame?.type === 'res' && frame.ok === false) throw new Error(`chat: ${frame.error?.message}`)
      if (frame && wanted(frame)) return frame
      if (frame) continue
      if (ended) throw ended
      await new Promise<void>((resolve) => {
        wake = resolve
      })
    }
  }
  await next(({ event }) => event === 'connect.challenge')
  const client = { id: 'cli', version: '1.0.0', platform: process.platform, mode: 'cli' }
  const scopes = ['operator.read', 'operator.write']
  socket.send(
    JSON.stringify({
      type: 'req',
      id: 'connect-1',
      method: 'connect',
      params: {
        minProtocol: 3,
        maxProtocol: 3,
        client,
        role: 'operator',
        scopes,
        caps: [],
        commands: [],
        permissions: {},
        auth: { token },
      },
    }),
  )
  await next(({ id }) => id === 'connect-1')
  const began = performance.now()
  socket.send(
    JSON.stringify({
      type: 'req',
      id: 'chat-1',
      method: 'chat.send',
      params: { message, idempotencyKey: crypto.randomUUID(), sessionKey: 'agent:main:cli' },
    }),
  )
  let firstMs = 0
  for (;;) {
    const { payload } = await next(({ event }) => event === 'chat')
    firstMs ||= performance.now() - began
    if (payload?.state === 'error') throw new Error('the agent could not answer')
    if (payload?.state !== 'final') continue
    const said = payload.message?.content?.map((part) => part.text ?? '').join('') ?? ''
    return { text: said, firstMs, ms: performance.now() - began }
  }
}
