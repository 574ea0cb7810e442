/** Releases the content of a deleted file, unless another file keeps it, and forgets the file. */
import { CID } from 'multiformats/cid'
import { type Pool, transaction } from '../src/db/pool.ts'
import { lockCid } from '../src/files/cid-lock.ts'
import { isKept } from '../src/files/keepers.ts'
import type { Handler, Run } from '../src/operations/runner.ts'
import type { Storages } from '../src/storage/open.ts'
import { type Network, StorageError } from '../src/storage/port.ts'

const MAX_RETRY_MS = 60_000

export function pinRemove({ pool, storages }: { pool: Pool; storages: Storages }): Handler {
  return { handle }

  async function handle(run: Run): Promise<void> {
    const { targetId, attempts } = run.operation
    try {
      await transaction(pool, async (client) => {
        const { rows } = await client.query('SELECT cid_v1, network FROM file WHERE id = $1', [targetId])
        if (rows[0]) {
          const cid = CID.parse(rows[0].cid_v1)
          await lockCid(client, cid)
          if (!(await isKept(client, rows[0].network, rows[0].cid_v1))) {
            await storages[rows[0].network as Network].unpin(cid, { signal: run.signal })
          }
          await client.query('DELETE FROM file WHERE id = $1', [targetId])
        }
        await run.end(client, { state: 'succeeded' })
      })
    } catch (error) {
      if (!(error instanceof StorageError) || run.signal.aborted) throw error
      const delayMs = Math.min(1000 * 2 ** (attempts - 1), MAX_RETRY_MS)
      await run.end(pool, { state: 'queued', delayMs, code: error.code, cause: error.message })
    }
  }
}
