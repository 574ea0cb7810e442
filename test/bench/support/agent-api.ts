/** Agents of a Berth that is measured. */
import type { Stack } from '../../support/stack.ts'

export interface Agent {
  agentId: string
  gatewayToken: string
}

/** A client of one workspace. */
export class Api {
  readonly url: string
  readonly #key: string

  constructor(stack: Stack, key: string) {
    this.url = stack.url
    this.#key = key
  }

  /** A running agent. */
  async create(): Promise<Agent> {
    const { agent } = await this.call('POST', '/v0/agents', { name: 'bench' }, { prefer: 'wait=180' })
    if (agent.status !== 'running') throw new Error(`the agent is ${agent.status}: ${agent.statusReason}`)
    return agent
  }

  async remove({ agentId }: Agent): Promise<void> {
    await this.call('DELETE', `/v0/agents/${agentId}`, undefined, { prefer: 'wait=60' })
  }

  async call(method: string, path: string, body?: unknown, headers?: Record<string, string>) {
    const response = await fetch(`${this.url}${path}`, {
      method,
      headers: { authorization: `Bearer ${this.#key}`, ...headers },
      body: body === undefined ? null : JSON.stringify(body),
    })
    const answer = await response.text()
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${answer}`)
    return JSON.parse(answer)
  }
}
