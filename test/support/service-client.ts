/** Requests to Berth's Service in a cluster, by the names that clients use. */
import assert from 'node:assert/strict'
import { type IncomingMessage, request } from 'node:http'
import { text } from 'node:stream/consumers'
import { until } from './processes.ts'
import { TerminalClient } from './terminal.ts'

const REQUEST_MS = 240_000
const UP_MS = 240_000
const WAIT = { prefer: 'wait=120' }

export interface Answer {
  status: number
  body: any
}

export interface Call {
  method?: string
  json?: unknown
  /** `localhost` unless given. */
  host?: string
  token?: string
  headers?: Record<string, string>
}

export interface Agent {
  agentId: string
  gatewayToken: string
}

export class ServiceClient {
  readonly #address: string
  readonly #port: number
  readonly #key: string

  /** @param port of `publicUrl`. @param key an API key. */
  constructor(address: string, port: number, key: string) {
    this.#address = address
    this.#port = port
    this.#key = key
  }

  async call(path: string, options: Call = {}): Promise<Answer> {
    const { json, host = 'localhost', token = this.#key, headers } = options
    const sent = request({
      host: this.#address,
      port: 3000,
      path,
      method: options.method ?? (json === undefined ? 'GET' : 'POST'),
      agent: false,
      signal: AbortSignal.timeout(REQUEST_MS),
      headers: {
        host: `${host}:${this.#port}`,
        authorization: `Bearer ${token}`,
        ...(json !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
    })
    sent.end(json === undefined ? undefined : JSON.stringify(json))
    const response = await new Promise<IncomingMessage>((resolve, reject) =>
      sent.once('response', resolve).once('error', reject),
    )
    const body = await text(response)
    const isJson = response.headers['content-type']?.includes('json')
    return { status: response.statusCode ?? 0, body: isJson ? JSON.parse(body) : body }
  }

  /** The response of an agent's route; a request that gets 503 is repeated. @param json the body of a POST. */
  async ofAgent({ agentId }: Agent, path: string, json?: unknown): Promise<any> {
    const answer = await until('the agent is not busy', async () => {
      const one = await this.call(`/v0/agents/${agentId}${path}`, { json, headers: WAIT })
      return one.status !== 503 && one
    })
    assert.ok(answer.status < 300, JSON.stringify(answer))
    return answer.body
  }

  /** @param query of the terminal, such as its id. */
  terminal({ agentId }: Agent, query: Record<string, string> = {}): TerminalClient {
    const headers = { host: `localhost:${this.#port}`, authorization: `Bearer ${this.#key}` }
    const path = `/v0/agents/${agentId}/console/terminal?${new URLSearchParams(query)}`
    return new TerminalClient(`http://${this.#address}:3000`, path, { headers })
  }

  /** Resolves once an operation has succeeded. @throws if it ended otherwise. */
  async succeeded(operationId: string): Promise<void> {
    const ended = await until(
      'the operation ends',
      async () => {
        const { data } = (await this.call(`/v0/operations/${operationId}`)).body
        return ['succeeded', 'failed', 'canceled'].includes(data.state) && data
      },
      UP_MS,
    )
    assert.equal(ended.state, 'succeeded', JSON.stringify(ended))
  }

  /** The agent's reply to a message, sent to its own host; a request that gets 503 is repeated. */
  async chat({ agentId, gatewayToken }: Agent, content: string): Promise<string> {
    const answer = await until('the agent is ready', async () => {
      const one = await this.call('/v1/chat/completions', {
        host: `${agentId}.agents.localhost`,
        token: gatewayToken,
        json: { model: 'openclaw/default', messages: [{ role: 'user', content }] },
      })
      return one.status !== 503 && one
    })
    assert.equal(answer.status, 200, JSON.stringify(answer.body))
    return answer.body.choices[0].message.content
  }

  /** Resolves once an agent runs. */
  async running({ agentId }: Pick<Agent, 'agentId'>): Promise<void> {
    let last: Answer | undefined
    const isRunning = async () => {
      last = await this.call(`/v0/agents/${agentId}`)
      return last.body.agent?.status === 'running'
    }
    await until('the agent runs', isRunning, UP_MS).catch((cause) => {
      throw new Error(JSON.stringify(last), { cause })
    })
  }
}
