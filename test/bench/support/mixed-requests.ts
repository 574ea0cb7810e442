/** A mix of requests about files, and what their clients know of each file: what was accepted, changed and deleted. */
import { randomBytes, randomUUID } from 'node:crypto'
import { CID } from 'multiformats/cid'
import * as Digest from 'multiformats/hashes/digest'
import { Pool } from 'undici'
import type { Sent, Task } from './open-load.ts'

/** A workspace, with the ids of files that it had before. */
export interface Tenant {
  headers: Record<string, string>
  olderFile(): string
}

export interface Item {
  /** The Idempotency-Key of its pin request, and the value of its pair `key`. */
  key: string
  tenant: Tenant
  from: 'accept' | 'upload'
  cid?: string
  /** Known once a 200 was received. */
  id?: string
  operationId?: string
  /** The last change that got a 200. */
  change: number
  /** `unsure` after a change or deletion without a 200: it may have happened or not. */
  fate: 'kept' | 'deleted' | 'unsure'
}

/** Requests in a hundred. */
export const SHARES = {
  list: 25,
  detail: 15,
  accept: 12,
  poll: 12,
  upload: 10,
  update: 10,
  delete: 8,
  search: 8,
}
export type Kind = keyof typeof SHARES
const KINDS = Object.entries(SHARES).flatMap(([kind, share]) => Array<Kind>(share).fill(kind as Kind))

const UPLOAD_BYTES = 1024
const IDENTITY = 0x00
const RAW = 0x55
const WORDS = ['report', 'invoice', 'photo', 'podcast', 'thesis', 'budget']
const FILES = '/v3/files/public'
/** Longer than Berth waits for an unreachable PostgreSQL. */
const ANSWER_MS = 30_000
const JSON_TYPE = { 'content-type': 'application/json' }

interface Answer {
  status: Sent['status']
  data?: { id?: string; cid?: string; state?: string } | undefined
  operationId?: string | undefined
}

interface Asked {
  method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  path: string
  headers?: Record<string, string>
  body?: string | Buffer
}

const any = <T>(of: readonly T[]) => of[Math.floor(Math.random() * of.length)] as T

export class MixedRequests {
  /** Everything that was asked for, accepted or not. */
  readonly items: Item[] = []
  readonly #pools: Pool[]
  readonly #tenants: Tenant[]
  /** Accepted pins that are not known to be pinned; pinned files that no request is about. */
  readonly #waiting: Item[] = []
  readonly #ready: Item[] = []
  #next = 0

  constructor(urls: string[], tenants: Tenant[], atATime: number) {
    this.#pools = urls.map((url) => new Pool(url, { connections: atATime, pipelining: 1 }))
    this.#tenants = tenants
  }

  async close(): Promise<void> {
    await Promise.all(this.#pools.map((pool) => pool.destroy()))
  }

  /** The next request of the mix. A list instead, if there is nothing to change, delete or poll. */
  next(): Task {
    const kind = any(KINDS)
    const isIdle = kind === 'poll' ? this.#waiting.length === 0 : this.#ready.length === 0
    if (isIdle && ['poll', 'update', 'delete'].includes(kind)) return this.#task('list')
    return this.#task(kind)
  }

  /** Sends pin requests whose response was lost again, until they are accepted. @returns how many. */
  async insist(): Promise<number> {
    const unknown = this.items.filter(({ from, id }) => from === 'accept' && !id)
    for (const item of unknown) {
      for (let tries = 0; !item.id && tries < 20; tries++) await this.#accept(item)
    }
    return unknown.length
  }

  #task(kind: Kind): Task {
    return { kind, send: () => this.#send(kind) }
  }

  async #send(kind: Kind): Promise<Sent['status']> {
    const tenant = any(this.#tenants)
    switch (kind) {
      case 'list':
        return (await this.#ask(tenant, { method: 'GET', path: FILES })).status
      case 'search':
        return (await this.#ask(tenant, { method: 'GET', path: `${FILES}?name=${any(WORDS)}` })).status
      case 'detail': {
        const path = `${FILES}/${tenant.olderFile()}`
        return (await this.#ask(tenant, { method: 'GET', path })).status
      }
      case 'accept':
        return this.#accept(this.#item('accept', tenant))
      case 'upload':
        return this.#upload(this.#item('upload', tenant))
      case 'poll':
        return this.#poll()
      case 'update':
        return this.#update(this.#take())
      case 'delete':
        return this.#delete(this.#take())
    }
  }

  #item(from: Item['from'], tenant: Tenant): Item {
    const item: Item = { key: `mixed-${randomUUID()}`, tenant, from, change: 0, fate: 'kept' }
    this.items.push(item)
    return item
  }

  /** A pinned file that no other request is about. */
  #take(): Item {
    const at = Math.floor(Math.random() * this.#ready.length)
    const last = this.#ready.pop() as Item
    if (at >= this.#ready.length) return last
    const taken = this.#ready[at] as Item
    this.#ready[at] = last
    return taken
  }

  /** The CID carries its own few bytes, so that no node has to be found for it. */
  async #accept(item: Item): Promise<Sent['status']> {
    item.cid ??= CID.createV1(RAW, Digest.create(IDENTITY, randomBytes(32))).toString()
    const body = { cid: item.cid, name: `${item.key}.pdf`, keyvalues: { key: item.key } }
    const { status, data, operationId } = await this.#ask(item.tenant, {
      method: 'POST',
      path: `${FILES}/pin_by_cid`,
      headers: { ...JSON_TYPE, 'idempotency-key': item.key },
      body: JSON.stringify(body),
    })
    if (status !== 200 || !data?.id || !operationId) return status
    Object.assign(item, { id: data.id, operationId })
    this.#waiting.push(item)
    return status
  }

  async #upload(item: Item): Promise<Sent['status']> {
    const form = new FormData()
    form.set('network', 'public')
    form.set('keyvalues', JSON.stringify({ key: item.key }))
    form.set('file', new Blob([randomBytes(UPLOAD_BYTES)]), `${item.key}.bin`)
    const encoded = new Response(form)
    const { status, data } = await this.#ask(item.tenant, {
      method: 'POST',
      path: '/v3/files',
      headers: { 'content-type': encoded.headers.get('content-type') ?? '' },
      body: Buffer.from(await encoded.arrayBuffer()),
    })
    if (status !== 200 || !data?.id || !data.cid) return status
    Object.assign(item, { id: data.id, cid: data.cid })
    this.#ready.push(item)
    return status
  }

  /** Asks for the state of the oldest accepted pin that nobody has asked for. */
  async #poll(): Promise<Sent['status']> {
    const item = this.#waiting.shift() as Item
    const { status, data } = await this.#ask(item.tenant, {
      method: 'GET',
      path: `/v0/operations/${item.operationId}`,
    })
    if (data?.state === 'succeeded') this.#ready.push(item)
    else this.#waiting.push(item)
    return status
  }

  async #update(item: Item): Promise<Sent['status']> {
    const change = item.change + 1
    const { status } = await this.#ask(item.tenant, {
      method: 'PUT',
      path: `${FILES}/${item.id}`,
      headers: JSON_TYPE,
      body: JSON.stringify({ name: `${item.key} ${change}`, keyvalues: { change: String(change) } }),
    })
    if (status === 200) {
      item.change = change
      this.#ready.push(item)
    } else item.fate = 'unsure'
    return status
  }

  async #delete(item: Item): Promise<Sent['status']> {
    const { status } = await this.#ask(item.tenant, { method: 'DELETE', path: `${FILES}/${item.id}` })
    item.fate = status === 200 ? 'deleted' : 'unsure'
    return status
  }

  async #ask(tenant: Tenant, { method, path, headers, body }: Asked): Promise<Answer> {
    const pool = this.#pools[this.#next++ % this.#pools.length] as Pool
    try {
      const response = await pool.request({
        method,
        path,
        headers: { ...tenant.headers, ...headers },
        body: body ?? null,
        signal: AbortSignal.timeout(ANSWER_MS),
      })
      const text = await response.body.text()
      const operationId = response.headers['operation-id']
      const read = response.statusCode < 300 ? JSON.parse(text) : {}
      return {
        status: response.statusCode,
        data: read.data,
        operationId: typeof operationId === 'string' ? operationId : undefined,
      }
    } catch {
      return { status: 'lost' }
    }
  }
}
