/**
 * The client's side: what was requested, and what was promised. A request whose response was lost may exist or not; the
 * client repeats it with the same Idempotency-Key until it knows.
 */
import assert from 'node:assert/strict'
import { setTimeout as delay } from 'node:timers/promises'
import { until } from '../support/processes.ts'
import type { Content } from './content.ts'
import type { Subject, Tenant } from './subject.ts'

/** Longer than Berth waits for a connection to an unreachable PostgreSQL. */
const ANSWER_MS = 60_000
const RETRY_MS = 50
const SETTLE_MS = 240_000

export interface PinRequest {
  key: string
  tenant: Tenant
  content: Content
  hostNodes: string[]
  /** Known once a 200 was received. */
  fileId?: string
  operationId?: string
  /** The client wants it gone, and has been told that it is, or will be. */
  removed: boolean
}

interface HttpResponse {
  status: number
  data: { id: string } | null
  operationId: string | null
}

export class Ledger {
  readonly requests: PinRequest[] = []
  /** How often each status was returned; `lost` counts responses that never came. */
  readonly answers = new Map<number | 'lost', number>()
  readonly #subject: Subject

  constructor(subject: Subject) {
    this.#subject = subject
  }

  /** A new request, not yet sent. */
  write(tenant: Tenant, content: Content, hostNodes: string[]): PinRequest {
    const request = { key: `pin-${this.requests.length}`, tenant, content, hostNodes, removed: false }
    this.requests.push(request)
    return request
  }

  /** Sends a request once. Returns whether it was accepted. */
  async send(request: PinRequest): Promise<boolean> {
    const answer = await this.#fetch('POST', '/v3/files/public/pin_by_cid', request.tenant, {
      headers: { 'idempotency-key': request.key, 'content-type': 'application/json' },
      body: JSON.stringify({ cid: `${request.content.cid}`, host_nodes: request.hostNodes }),
    })
    if (answer?.status !== 200) return false
    const fileId = answer.data?.id
    const operationId = answer.operationId ?? undefined
    assert.equal(fileId, request.fileId ?? fileId, `${request.key}: a repeat finds the same file`)
    assert.equal(operationId, request.operationId ?? operationId, `${request.key}: and the same operation`)
    Object.assign(request, { fileId, operationId })
    return true
  }

  /** Sends it until it is accepted. */
  async insist(request: PinRequest): Promise<void> {
    await until(`${request.key} is accepted`, () => this.send(request), SETTLE_MS)
  }

  /** Withdraws or deletes an accepted request, until Berth says that it is gone. */
  async remove(request: PinRequest): Promise<void> {
    request.removed = true
    const paths = [`/v3/files/public/pin_by_cid/${request.fileId}`, `/v3/files/public/${request.fileId}`]
    const attempt = async () => {
      const statuses: (number | undefined)[] = []
      for (const path of paths) {
        const answer = await this.#fetch('DELETE', path, request.tenant)
        if (answer?.status === 200) return true
        statuses.push(answer?.status)
      }
      // Neither a request nor a file: an earlier attempt removed it, and its response was lost.
      return statuses.every((status) => status === 404)
    }
    await until(`${request.key} is removed`, attempt, SETTLE_MS)
  }

  /** Cancels the operation itself. It may be too late, in which case the file stays. */
  async cancel(request: PinRequest): Promise<void> {
    await until(
      `${request.key} is cancelled`,
      async () => {
        const answer = await this.#fetch('DELETE', `/v0/operations/${request.operationId}`, request.tenant)
        if (answer?.status === 200) request.removed = true
        return answer?.status === 200 || answer?.status === 409
      },
      SETTLE_MS,
    )
  }

  /** Finds out what became of every request, and waits until no operation is pending. */
  async settle(ms = SETTLE_MS): Promise<void> {
    for (const request of this.requests) if (!request.fileId) await this.insist(request)
    await until('every operation has ended', async () => (await this.unfinished()).length === 0, ms).catch(
      async (error) => {
        throw new Error(`${error.message}: ${JSON.stringify(await this.unfinished(), null, 1)}`)
      },
    )
  }

  unfinished() {
    return this.#subject.query(`SELECT id, kind, state, epoch, attempts, error_count, dispatches, error_code, error_cause,
      next_attempt_at - now() AS due, lease_until - now() AS lease, dispatched_at - now() AS dispatched
      FROM operation WHERE state IN ('queued', 'running') ORDER BY id LIMIT 5`)
  }

  async #fetch(
    method: string,
    path: string,
    { token }: Tenant,
    init: { headers?: Record<string, string>; body?: string } = {},
  ): Promise<HttpResponse | undefined> {
    const headers = { ...init.headers, authorization: `Bearer ${token}` }
    const signal = AbortSignal.timeout(ANSWER_MS)
    try {
      const response = await fetch(this.#subject.url + path, { ...init, method, headers, signal })
      const { data } = (await response.json()) as { data: { id: string } | null }
      const { status } = response
      this.#count(status)
      if (status >= 500) await delay(RETRY_MS)
      return { status, data, operationId: response.headers.get('operation-id') }
    } catch {
      this.#count('lost')
      await delay(RETRY_MS)
      return undefined
    }
  }

  #count(status: number | 'lost'): void {
    this.answers.set(status, (this.answers.get(status) ?? 0) + 1)
  }
}
