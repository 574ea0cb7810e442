/**
 * An update without downtime: processes of the previous version and of this one run side by side, in every combination
 * and also during a rollback, under load. No request fails, and no operation.
 */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { CID } from 'multiformats/cid'
import { identity } from 'multiformats/hashes/identity'
import { Agent, FormData, request } from 'undici'
import { startDatabase, type TestDatabase } from '../support/database.ts'
import { type FormerRelease, hasFormerRelease, openFormerRelease } from '../support/former-release.ts'
import { freePort, type Running, run, until } from '../support/processes.ts'
import { cli } from '../support/stack.ts'

const CURRENT = fileURLToPath(new URL('../..', import.meta.url))
const RAW = 0x55
const CLIENTS = 3
/** How much must be done in total in a phase of the update before the next one begins. */
const ROUNDS = 4

interface Reply {
  status: number
  body: any
  operation: string
}

interface Options {
  headers?: Record<string, string>
  body?: string | FormData
}

/** Distributes requests over web processes; a process that is about to be stopped gets no new ones. */
class Balancer {
  /** Requests in progress, by port. */
  readonly #underWay: Map<number, number>
  readonly #out = new Set<number>()
  // No connection is kept, because the process behind it is another one at its next use.
  readonly #agent = new Agent({ pipelining: 0 })
  #next = 0

  constructor(ports: number[]) {
    this.#underWay = new Map(ports.map((port) => [port, 0]))
  }

  /** Resolves when a process has answered everything that it was sent. */
  async takeOut(port: number): Promise<void> {
    this.#out.add(port)
    await until('its requests are answered', () => this.#underWay.get(port) === 0)
  }

  putBack(port: number): void {
    this.#out.delete(port)
  }

  async send(method: string, path: string, options: Options = {}): Promise<Reply> {
    const ports = [...this.#underWay.keys()].filter((port) => !this.#out.has(port))
    const port = ports[this.#next++ % ports.length] ?? 0
    const count = (change: number) => this.#underWay.set(port, (this.#underWay.get(port) ?? 0) + change)
    count(1)
    try {
      const answer = await request(`http://127.0.0.1:${port}${path}`, {
        ...options,
        method: method as 'GET',
        dispatcher: this.#agent,
      })
      const text = await answer.body.text()
      const isJson = `${answer.headers['content-type']}`.startsWith('application/json')
      return {
        status: answer.statusCode,
        body: isJson ? JSON.parse(text) : text,
        operation: `${answer.headers['operation-id'] ?? ''}`,
      }
    } finally {
      count(-1)
    }
  }
}

/** Clients that upload, read, pin, group and delete, over and over, and record what failed. */
class Load {
  readonly failures: string[] = []
  /** Files that must exist, with their content. */
  readonly kept = new Map<string, string>()
  rounds = 0
  readonly #balancer: Balancer
  readonly #key: string
  readonly #gateway: string
  #isOver = false
  #clients: Promise<void>[] = []

  constructor(balancer: Balancer, key: string, gateway: string) {
    this.#balancer = balancer
    this.#key = key
    this.#gateway = gateway
  }

  start(): void {
    this.#clients = Array.from({ length: CLIENTS }, async () => {
      while (!this.#isOver) {
        await this.#round().catch((error) => this.failures.push(`${error.message} ${error.cause ?? ''}`))
        this.rounds++
      }
    })
  }

  async stop(): Promise<void> {
    this.#isOver = true
    await Promise.all(this.#clients)
  }

  /** Resolves when the clients have completed a few more rounds. */
  async goOn(): Promise<void> {
    const enough = this.rounds + ROUNDS
    await until('the clients continue', () => this.rounds >= enough)
  }

  async read(cid: string): Promise<string> {
    return (await this.#ask('GET', `/ipfs/${cid}`, { headers: { host: this.#gateway } })).body
  }

  async #round(): Promise<void> {
    const content = randomBytes(1500).toString('hex')
    const file = await this.#upload('public', content)
    assert.equal(await this.read(file.cid), content)
    this.kept.set(file.cid, content)
    await this.#pin()
    const group = await this.#ask('POST', '/v3/groups/public', { json: { name: content.slice(0, 20) } })
    await this.#ask('PUT', `/v3/groups/public/${group.body.data.id}/ids/${file.id}`)
    await this.#ask('GET', `/v3/files/public?group=${group.body.data.id}`)
    await this.#ask('PUT', `/v3/files/public/${file.id}`, { json: { name: 'renamed' } })
    const hidden = await this.#upload('private', content)
    const removed = await this.#ask('DELETE', `/v3/files/private/${hidden.id}`)
    if (removed.operation) await this.#finish(removed.operation)
  }

  async #upload(network: string, content: string): Promise<{ id: string; cid: string }> {
    const body = new FormData()
    body.set('network', network)
    body.set('file', new Blob([content]), 'file.txt')
    return (await this.#ask('POST', '/v3/files', { body })).body.data
  }

  /** A CID that contains its own content. */
  async #pin(): Promise<void> {
    const cid = CID.createV1(RAW, identity.digest(randomBytes(20)))
    const { operation } = await this.#ask('POST', '/v3/files/public/pin_by_cid', { json: { cid: `${cid}` } })
    await this.#finish(operation)
  }

  async #finish(operation: string): Promise<void> {
    for (;;) {
      const { data } = (await this.#ask('GET', `/v0/operations/${operation}?wait=20`)).body
      if (data.state === 'succeeded') return
      // A stopping web process closes the response before its end.
      assert.ok(['queued', 'running'].includes(data.state), JSON.stringify(data))
    }
  }

  async #ask(
    method: string,
    path: string,
    { json, body, headers }: { json?: object; body?: FormData; headers?: Record<string, string> } = {},
  ): Promise<Reply> {
    const reply = await this.#balancer.send(method, path, {
      headers: {
        authorization: `Bearer ${this.#key}`,
        ...(json && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(json ? { body: JSON.stringify(json) } : body && { body }),
    })
    assert.equal(reply.status, 200, `${method} ${path}: ${JSON.stringify(reply.body)}`)
    return reply
  }
}

const skip = !hasFormerRelease && 'the history lacks the commit of the previous version: a shallow clone'
describe('an update under load', { skip }, () => {
  let former: FormerRelease
  let database: TestDatabase
  let dataDir: string
  let env: NodeJS.ProcessEnv
  let balancer: Balancer
  let load: Load
  let ports: number[]
  const webs: Running[] = []
  let worker: Running

  before(async () => {
    const made = await Promise.all([
      openFormerRelease(),
      startDatabase({ isEmpty: true }),
      mkdtemp(join(tmpdir(), 'berth-rolling-')),
      Promise.all([freePort(), freePort()]),
    ])
    ;[former, database, dataDir, ports] = made
    env = {
      ...process.env,
      DATABASE_URL: database.url,
      BERTH_DATA_DIR: dataDir,
      JWT_KEY: 'rolling-upgrade-signing-key-0123456789',
      BERTH_RUNTIME: 'process',
      // No agents, because the worker has no agent proxy.
      BERTH_QUEUES: 'pins,repairs,storage',
      BERTH_IPFS_ROUTING_URL: '',
      BERTH_METRICS_PORT: '',
    }
    balancer = new Balancer(ports)
    const berth = cli(env, former.dir)
    await berth('migrate')
    await berth('workspaces', 'create', 'default', '--plan', 'unlimited')
    const key = await berth('keys', 'create')
    await Promise.all([replaceWeb(0, former.dir), replaceWeb(1, former.dir), replaceWorker(former.dir)])
    const { rows } = await database.pool.query<{ domain: string }>('SELECT domain FROM gateway')
    load = new Load(balancer, key, `${rows[0]?.domain}.gateway.localhost`)
    load.start()
    await load.goOn()
  })
  after(async () => {
    await load?.stop()
    await Promise.all([...webs, worker].map((role) => role?.end()))
    await database?.stop()
    await former?.remove()
    await rm(dataDir, { recursive: true, force: true })
  })

  async function startRole(
    dir: string,
    role: string,
    settings: NodeJS.ProcessEnv,
    port: number,
  ): Promise<Running> {
    const started = run(process.execPath, [join(dir, 'src/main.ts'), role], {
      env: { ...env, ...settings },
      cwd: dir,
    })
    const isReady = async () => (await fetch(`http://127.0.0.1:${port}/readyz`)).ok
    await until(`${role} is ready`, isReady).catch((error) => {
      throw new Error(`${error.message}\n${started.output()}`)
    })
    return started
  }
  /** The other process serves in the meantime. */
  async function replaceWeb(index: number, dir: string): Promise<void> {
    const port = ports[index] ?? 0
    await balancer.takeOut(port)
    await webs[index]?.end()
    webs[index] = await startRole(dir, 'web', { PORT: `${port}` }, port)
    balancer.putBack(port)
  }
  async function replaceWebs(dir: string): Promise<void> {
    for (const index of ports.keys()) {
      await replaceWeb(index, dir)
      await load.goOn()
    }
  }
  /** Both work for a moment. */
  async function replaceWorker(dir: string): Promise<void> {
    const port = await freePort()
    const next = await startRole(dir, 'worker', { BERTH_HEALTH_PORT: `${port}` }, port)
    await worker?.end()
    worker = next
  }

  for (const [what, step] of [
    ['the schema is migrated next to processes of the previous version', () => cli(env)('migrate')],
    ['the new worker works next to the former web', () => replaceWorker(CURRENT)],
    ['the new web serves next to the new worker', () => replaceWebs(CURRENT)],
    ['the former worker starts again, next to the new web', () => replaceWorker(former.dir)],
    ['the former web starts again, on the new schema', () => replaceWebs(former.dir)],
  ] as const)
    it(`no request fails in an update under load when ${what}`, async () => {
      await step()
      await load.goOn()
      assert.deepEqual(load.failures.splice(0), [])
    })

  it('no operation has failed after an update under load, and all content exists', async () => {
    await load.stop()
    const { rows } = await database.pool.query('SELECT DISTINCT state FROM operation')
    assert.deepEqual(rows, [{ state: 'succeeded' }])
    for (const [cid, content] of load.kept) assert.equal(await load.read(cid), content)
  })
})
