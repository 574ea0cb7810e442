import type { CID } from 'multiformats/cid'
import type pg from 'pg'

/**
 * Takes the lock of a CID's multihash until the transaction ends. Whoever counts the keepers of a CID
 * and unpins it, or checks a pin and writes that it is there, holds it.
 * @throws 55P03 when another holds it for more than 5 s, which it does while its IPFS node hangs.
 */
export async function lockCid(client: pg.PoolClient, cid: CID): Promise<void> {
  await client.query(`SET LOCAL lock_timeout = '5s'`)
  await client.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [
    Buffer.from(cid.multihash.bytes).toString('hex'),
  ])
}
