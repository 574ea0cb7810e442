/** Invariants of uploads once everything has settled: the acknowledged files, their bytes, and no other block. */
import assert from 'node:assert/strict'
import { CarBlockIterator } from '@ipld/car/iterator'
import { CID } from 'multiformats/cid'
import type { Network, Storage } from '../../src/storage/port.ts'
import { until } from '../support/processes.ts'
import type { Uploader } from './uploader.ts'
import type { World } from './world.ts'

const CONVERGE_MS = 180_000

/** A network's storage as the test sees it, and all the blocks stored there. */
export interface Watched {
  storage: Storage
  /** Multihashes of all blocks, in hexadecimal. */
  blocks(): Promise<Set<string>>
}

export const hashOf = (cid: CID): string => Buffer.from(cid.multihash.bytes).toString('hex')

/**
 * Asserts that the files are those that were acknowledged and not deleted since, that their bytes are the uploaded
 * ones, and that nothing else is pinned. With `blocks`, it also asserts that GC leaves no block that no file has. That
 * takes a while, because the unfinished work of a dead process is kept until its marks expire.
 */
export async function assertKept(
  world: World,
  watched: Record<Network, Watched>,
  uploaders: Uploader[],
  options: { blocks?: boolean } = {},
): Promise<void> {
  for (const network of ['public', 'private'] as const) {
    const there = uploaders.filter(({ options, cid }) => options.network === network && cid)
    const told = there.map(({ options, cid }) => `${options.tenant.workspaceId} ${canonical(cid)}`)
    const files = async () => {
      const rows = await world.query<{ key: string }>(
        `SELECT workspace_id || ' ' || cid_v1 AS key FROM file WHERE network = $1 AND removed_at IS NULL`,
        [network],
      )
      return rows.map(({ key }) => key).sort()
    }
    assert.deepEqual(await files(), told.sort(), `${network}: the files that were acknowledged, each once`)

    const roots = [...new Set(there.map(({ cid }) => canonical(cid)))].sort()
    const { storage, blocks } = watched[network]
    const pins = async () => {
      const cids: string[] = []
      for await (const cid of storage.list({ signal: AbortSignal.timeout(60_000) })) cids.push(`${cid}`)
      return cids.sort()
    }
    const same = async () => JSON.stringify(await pins()) === JSON.stringify(roots)
    await until(`${network}: pins`, same, CONVERGE_MS).catch(() => {})
    assert.deepEqual(await pins(), roots, `${network}: the pins are those of the files`)

    for (const uploader of there) await assertBytes(storage, uploader)
    if (!options.blocks) continue
    const owned = new Set<string>()
    for (const root of roots) for await (const hash of blocksOf(storage, root)) owned.add(hash)
    const unowned = async () => [...(await blocks())].filter((hash) => !owned.has(hash))
    await until(`${network}: GC`, async () => (await unowned()).length === 0, CONVERGE_MS).catch(() => {})
    assert.deepEqual(await unowned(), [], `${network}: no block is left that no file has`)
  }
}

const canonical = (cid = ''): string => `${CID.parse(cid).toV1()}`

async function assertBytes(storage: Storage, { cid = '', options }: Uploader): Promise<void> {
  const chunks: Uint8Array[] = []
  const signal = AbortSignal.timeout(60_000)
  for await (const chunk of storage.cat(CID.parse(cid).toV1(), { signal })) chunks.push(chunk)
  assert.ok(Buffer.concat(chunks).equals(options.content), `${cid} is not what was uploaded`)
}

async function* blocksOf(storage: Storage, root: string): AsyncGenerator<string> {
  const car = storage.exportCar(CID.parse(root), { signal: AbortSignal.timeout(60_000) })
  for await (const { cid } of await CarBlockIterator.fromIterable(car)) yield hashOf(cid)
}
