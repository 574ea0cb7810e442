/** Releases content that a snapshot, a skill or a template kept, unless something else keeps it. */
import { CID } from 'multiformats/cid'
import { z } from 'zod'
import { type Pool, transaction } from '../src/db/pool.ts'
import { lockCid } from '../src/files/cid-lock.ts'
import { isKept } from '../src/files/keepers.ts'
import type { Handler } from '../src/operations/runner.ts'
import type { Storages } from '../src/storage/open.ts'
import { StorageError } from '../src/storage/port.ts'

const MAX_RETRY_MS = 60_000
const input = z.object({ network: z.enum(['public', 'private']), cid: z.string() })

export function contentRelease({ pool, storages }: { pool: Pool; storages: Storages }): Handler {
  return {
    async handle(run) {
      const { network, cid: text } = input.parse(run.operation.input)
      const cid = CID.parse(text)
      try {
        await transaction(pool, async (client) => {
          await lockCid(client, cid)
          if (!(await isKept(client, network, text)))
            await storages[network].unpin(cid, { signal: run.signal })
          await run.end(client, { state: 'succeeded' })
        })
      } catch (error) {
        if (!(error instanceof StorageError) || run.signal.aborted) throw error
        const delayMs = Math.min(1000 * 2 ** (run.operation.attempts - 1), MAX_RETRY_MS)
        await run.end(pool, { state: 'queued', delayMs, code: error.code, cause: error.message })
      }
    },
  }
}
