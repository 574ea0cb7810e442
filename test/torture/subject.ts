/** The Berth under test, as the client and the invariants need to know it. */
import { join } from 'node:path'
import pg from 'pg'
import { KeyService } from '../../src/accounts/keys.ts'
import { createWorkspace } from '../../src/accounts/workspaces.ts'
import { createPool, type Pool } from '../../src/db/pool.ts'
import { createPrisma } from '../../src/db/prisma.ts'
import { loadSigningKey } from '../../src/lib/signing-keys.ts'
import { createLogger } from '../../src/log.ts'
import { createEmbeddedStorage } from '../../src/storage/embedded.ts'
import { createKuboStorage } from '../../src/storage/kubo.ts'
import type { Storage } from '../../src/storage/port.ts'

export interface Tenant {
  workspaceId: string
  token: string
}

export class Subject {
  readonly url: string
  readonly metricsUrl: string
  readonly pool: Pool
  /** The test's own view of the blocks that the workers keep. */
  readonly storage: Storage
  readonly #databaseUrl: string
  readonly #dataDir: string

  /** @param place.ipfsUrl the RPC address of Kubo; without it the node is embedded, in `dataDir` or as `storage`. */
  constructor(place: {
    url: string
    metricsPort: number
    databaseUrl: string
    dataDir: string
    ipfsUrl: string | undefined
    storage?: Storage | undefined
  }) {
    const { url, metricsPort, databaseUrl, dataDir, ipfsUrl } = place
    this.url = url
    this.metricsUrl = `http://127.0.0.1:${metricsPort}/metrics`
    this.#databaseUrl = databaseUrl
    this.#dataDir = dataDir
    this.pool = createPool(databaseUrl, 4, createLogger('torture', 'silent'))
    const dir = join(dataDir, 'ipfs/public')
    this.storage =
      place.storage ??
      (ipfsUrl
        ? createKuboStorage({ apiUrl: ipfsUrl, network: 'public' })
        : createEmbeddedStorage({ dir, network: 'public', offline: true }))
  }

  /** A workspace on a plan, with a key that has all its scopes. */
  async createTenant(name: string, plan = 'unlimited'): Promise<Tenant> {
    const prisma = createPrisma(this.pool)
    const { id: workspaceId, ownerId } = await createWorkspace(prisma, { name, plan, owner: name })
    const keys = new KeyService(prisma, loadSigningKey(undefined, this.#dataDir))
    const { token } = await keys.create({ workspaceId, userId: ownerId, name, scopes: ['admin'] })
    return { workspaceId, token }
  }

  /** A query on a new connection, which works again as soon as PostgreSQL does. */
  async query<T extends pg.QueryResultRow>(sql: string, values: unknown[] = []): Promise<T[]> {
    const client = new pg.Client({ connectionString: this.#databaseUrl, connectionTimeoutMillis: 2000 })
    client.on('error', () => {})
    try {
      await client.connect()
      return (await client.query<T>(sql, values)).rows
    } finally {
      await client.end().catch(() => {})
    }
  }

  async close(): Promise<void> {
    await this.storage.stop()
    await this.pool.end()
  }
}
