/** Prisma transactions that also run manual statements. */
import assert from 'node:assert/strict'
import type { EventEmitter } from 'node:events'
import { describe, it } from 'node:test'
import {
  isContention,
  isDatabaseDown,
  isTransient,
  isUniqueViolation,
} from '../../../src/db/database-errors.ts'
import { createPool, queryOne, transaction } from '../../../src/db/pool.ts'
import { createPrisma, inTransaction, type Transaction } from '../../../src/db/prisma.ts'
import { useDatabase } from '../../support/database.ts'

const PID = 'SELECT pg_backend_pid() AS pid'

const database = await useDatabase()
const prisma = createPrisma(database.pool)

describe('a Prisma transaction', () => {
  const nameOf = async (id: string) => (await prisma.workspace.findUniqueOrThrow({ where: { id } })).name
  /** Writes once through the model and once by a manual statement, which sees the first write. */
  const rename = async (tx: Transaction, id: string) => {
    await tx.workspace.update({ where: { id }, data: { name: `${id} model` } })
    const { name } = await queryOne<{ name: string }>(
      tx,
      `UPDATE workspace SET name = name || ' hand' WHERE id = $1 RETURNING name`,
      [id],
    )
    assert.equal((await tx.workspace.findUniqueOrThrow({ where: { id } })).name, name)
  }

  it('a Prisma transaction commits both model writes and manual writes', async () => {
    const id = await database.createWorkspace()
    await inTransaction(prisma, (tx) => rename(tx, id))
    assert.equal(await nameOf(id), `${id} model hand`)
  })

  it('a Prisma transaction rolls both back and rethrows the error of its callback', async () => {
    const id = await database.createWorkspace()
    const reason = new Error('not to be')
    const work = async (tx: Transaction) => {
      await rename(tx, id)
      throw reason
    }
    await assert.rejects(inTransaction(prisma, work), (error) => error === reason)
    assert.equal(await nameOf(id), id)
  })

  it('a Prisma transaction is separate from one that begins inside it', async () => {
    const id = await database.createWorkspace()
    const inner = await database.createWorkspace()
    const failing = inTransaction(prisma, async (tx) => {
      await inTransaction(prisma, (other) => rename(other, inner))
      await prisma.$transaction(async (other) => {
        await other.workspace.count()
        await rename(tx, id)
      })
      throw new Error('the outer one alone')
    })
    await assert.rejects(failing, /the outer one alone/)
    assert.deepEqual([await nameOf(id), await nameOf(inner)], [id, `${inner} model hand`])
  })

  it('a Prisma transaction that has ended rejects statements and returns its connection', async () => {
    const pool = createPool(database.url, 1, database.log)
    const own = createPrisma(pool)
    const kept: Transaction[] = []
    const pids = new Set<number>()
    for (let time = 0; time < 3; time++)
      await inTransaction(own, async (tx) => {
        kept.push(tx)
        pids.add((await queryOne<{ pid: number }>(tx, PID)).pid)
      })
    await assert.rejects(async () => kept[0]?.query(PID), /has ended/)
    assert.equal(pids.size, 1)
    await pool.end()
  })

  for (const [name, act] of [
    ['a manual statement', (tx) => tx.query('SELECT 1')],
    ['a model', (tx) => tx.workspace.count()],
    ['the commit', async () => {}],
  ] satisfies [string, (tx: Transaction) => Promise<unknown>][]) {
    it(`a Prisma transaction fails without ending the process if its connection drops before ${name}`, async () => {
      const failed = inTransaction(prisma, async (tx) => {
        const { pid, dropped } = await watch(tx)
        await database.pool.query('SELECT pg_terminate_backend($1)', [pid])
        await dropped
        await act(tx)
      })
      await assert.rejects(failed, isDatabaseDown)
      assert.equal(await inTransaction(prisma, async (tx) => (await tx.query('SELECT 1')).rowCount), 1)
    })
  }

  /** Resolves when its connection has dropped. */
  async function watch(tx: Transaction): Promise<{ pid: number; dropped: Promise<unknown> }> {
    const { pid } = await queryOne<{ pid: number }>(tx, PID)
    const { _clients: clients } = database.pool as unknown as {
      _clients: (EventEmitter & { processID: number })[]
    }
    const client = clients.find(({ processID }) => processID === pid)
    assert.ok(client)
    // Not `once` of node:events, which would also listen for the error.
    return { pid, dropped: new Promise((resolve) => client.once('end', resolve)) }
  }

  it('a Prisma transaction reports that the pool has no free connection', async () => {
    const pool = createPool(database.url, 1, database.log)
    const own = createPrisma(pool)
    const only = await pool.connect()
    const waiting = inTransaction(own, (tx) => tx.workspace.count())
    await assert.rejects(waiting, (error) => isDatabaseDown(error) && isContention(error))
    only.release()
    assert.equal(await inTransaction(own, async (tx) => (await tx.query('SELECT 1')).rowCount), 1)
    await pool.end()
  })

  it('a Prisma transaction reports a lock timeout and a taken name through a model', async () => {
    const id = await database.createWorkspace()
    const taken = await database.createWorkspace()
    const update = (tx: Transaction, name: string) => tx.workspace.update({ where: { id }, data: { name } })
    await transaction(database.pool, async (client) => {
      await client.query('SELECT FROM workspace WHERE id = $1 FOR UPDATE', [id])
      const waiting = inTransaction(prisma, async (tx) => {
        await tx.query(`SET LOCAL lock_timeout = '50ms'`)
        await update(tx, 'another')
      })
      await assert.rejects(
        waiting,
        (error) => isContention(error) && isTransient(error) && !isDatabaseDown(error),
      )
    })
    await assert.rejects(
      inTransaction(prisma, (tx) => update(tx, taken)),
      (error) => isUniqueViolation(error, 'workspace_name_key') && !isTransient(error),
    )
  })
})
