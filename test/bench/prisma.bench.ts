/**
 * Prisma compared with prepared statements of `pg`, both on one pool: the cost of the client compared with manual
 * statements. It decides what is written as SQL (src/db/README.md).
 */
import { uuidv7 } from 'uuidv7'
import { migrate } from '../../src/db/migrate.ts'
import { createPool, type Queryable, queryOne, transaction } from '../../src/db/pool.ts'
import { createPrisma, inTransaction } from '../../src/db/prisma.ts'
import { createLogger } from '../../src/log.ts'
import { startPostgres } from '../support/servers.ts'
import { median } from './support/numbers.ts'
import { print, type Result } from './support/report.ts'
import { time } from './support/time.ts'

export const title = 'Prisma against prepared statements'

const ROUNDS = 5
const CALLS = 500
const CONCURRENCY = 16
const CONNECTIONS = 10
const SECRETS = 1000

const COLUMNS = 'id, workspace_id, user_id, name, type, ciphertext, version, created_at, updated_at'
const FIND = `SELECT ${COLUMNS} FROM secret WHERE id = $1`
const UPDATE = `UPDATE secret SET version = version + 1 WHERE id = $1 RETURNING ${COLUMNS}`
const COUNT = 'SELECT count(*)::int AS count FROM secret WHERE workspace_id = $1 AND name = $2'

export async function bench(): Promise<Result[]> {
  await using stack = new AsyncDisposableStack()
  const postgres = await startPostgres()
  stack.defer(() => postgres.stop())
  const pool = createPool(postgres.url, CONNECTIONS, createLogger('bench', 'silent'))
  stack.defer(() => pool.end())
  await migrate(pool)
  const prisma = createPrisma(pool)

  const workspaceId = uuidv7()
  const ids = Array.from({ length: SECRETS }, () => uuidv7())
  await prisma.secret.createMany({
    data: ids.map((id) => ({
      ...{ id, workspaceId, userId: workspaceId, name: id, type: 'secret' },
      ciphertext: new Uint8Array(64),
    })),
  })
  const byHand = async (db: Queryable, id: string) => {
    await queryOne(db, prepared('count', COUNT, workspaceId, id))
    await queryOne(db, prepared('update', UPDATE, id))
    await queryOne(db, prepared('find', FIND, id))
  }
  const prepared = (name: string, text: string, ...values: unknown[]) => ({ name, text, values })

  const rows: [
    what: string,
    prisma: (id: string) => Promise<unknown>,
    pg: (id: string) => Promise<unknown>,
  ][] = [
    [
      'findUnique',
      (id) => prisma.secret.findUniqueOrThrow({ where: { id } }),
      (id) => queryOne(pool, prepared('find', FIND, id)),
    ],
    [
      'update',
      (id) => prisma.secret.update({ where: { id }, data: { version: { increment: 1 } } }),
      (id) => queryOne(pool, prepared('update', UPDATE, id)),
    ],
    [
      '$queryRaw',
      (id) => prisma.$queryRaw`SELECT id, name, version FROM secret WHERE id = ${id}::uuid`,
      (id) => queryOne(pool, prepared('raw', 'SELECT id, name, version FROM secret WHERE id = $1', id)),
    ],
    [
      'a transaction of three statements',
      (id) =>
        prisma.$transaction(async (tx) => {
          await tx.secret.count({ where: { workspaceId, name: id } })
          await tx.secret.update({ where: { id }, data: { version: { increment: 1 } } })
          await tx.secret.findUniqueOrThrow({ where: { id } })
        }),
      (id) => transaction(pool, (client) => byHand(client, id)),
    ],
    [
      'the same by hand, on its connection',
      (id) => inTransaction(prisma, (tx) => byHand(tx, id)),
      (id) => transaction(pool, (client) => byHand(client, id)),
    ],
  ]
  const results: Result[] = []
  for (const [what, berth, bare] of rows) {
    const rounds: { berth: number; bare: number }[] = []
    for (let round = -1; round < ROUNDS; round++) {
      const measured = { berth: await perSecond(ids, berth), bare: await perSecond(ids, bare) }
      if (round >= 0) rounds.push(measured) // the first is the warm-up
    }
    results.push({
      what,
      berth: `${median(rounds.map((round) => round.berth)).toFixed(0)} /s`,
      bare: `${median(rounds.map((round) => round.bare)).toFixed(0)} /s`,
      ratio: median(rounds.map((round) => round.berth / round.bare)),
    })
  }
  return results
}

/** Calls per second, with {@link CONCURRENCY} of them in progress at any time. */
async function perSecond(ids: string[], call: (id: string) => Promise<unknown>): Promise<number> {
  let next = 0
  const caller = async () => {
    while (next < CALLS) await call(ids[next++ % ids.length] as string)
  }
  const ms = await time(() => Promise.all(Array.from({ length: CONCURRENCY }, caller)))
  return (CALLS / ms) * 1000
}

if (import.meta.main) print(title, await bench())
