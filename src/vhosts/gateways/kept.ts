import { setImmediate } from 'node:timers/promises'
import { CID } from 'multiformats/cid'
import type { Pool } from '../../db/pool.ts'
import { findGatewayContents } from '../../db/statements/gateways.ts'
import { canonicalCid } from '../../files/cid.ts'
import type { Gateway } from '../../files/gateways/gateways.ts'
import type { Network } from '../../storage/port.ts'

/** A file of the gateway's workspace. */
export interface KeptContent {
  cid: CID
  name: string | null
  mimeType: string | null
  /** Null if it has none, or the gateway does not show it. */
  signature: string | null
}

type Found = Awaited<ReturnType<typeof findGatewayContents.run>>['rows'][number]

interface Asked {
  workspaceId: string
  network: Network
  canonical: string
  hasSwaps: boolean
  showsSignatures: boolean
}

/**
 * The database lookup that every request to a gateway needs. Lookups from one turn of the event loop share a query,
 * which begins after the last of them, so each sees everything committed before it arrived.
 */
export class KeptLookups {
  readonly #pool: Pool
  /** The lookups that wait for the next query; null if there are none. */
  #gathered: { asked: Map<string, Asked>; found: Promise<Map<string, Found>> } | null = null

  constructor(pool: Pool) {
    this.#pool = pool
  }

  /**
   * The file that a gateway serves for a CID: the swap's target if the gateway has the plugin, otherwise the content
   * itself. Undefined if the gateway's workspace does not keep it on this network (any longer).
   */
  async find(
    { workspaceId, hasSwaps, showsSignatures }: Gateway,
    network: Network,
    cid: CID,
  ): Promise<KeptContent | undefined> {
    const canonical = canonicalCid(cid)
    const key = `${workspaceId} ${network} ${canonical} ${hasSwaps} ${showsSignatures}`
    this.#gathered ??= this.#gather()
    this.#gathered.asked.set(key, { workspaceId, network, canonical, hasSwaps, showsSignatures })
    const found = (await this.#gathered.found).get(key)
    if (!found) return undefined
    const { swappedTo, name, mimeType, signature } = found
    // In the requested CID version: clients look for that in a CAR.
    return { cid: swappedTo ? CID.parse(swappedTo) : cid, name, mimeType, signature }
  }

  #gather() {
    const asked = new Map<string, Asked>()
    const found = setImmediate().then(() => {
      this.#gathered = null
      return this.#read(asked)
    })
    return { asked, found }
  }

  async #read(asked: Map<string, Asked>): Promise<Map<string, Found>> {
    const keys = [...asked.keys()]
    const all = [...asked.values()]
    const { rows } = await findGatewayContents.run(
      this.#pool,
      all.map(({ workspaceId }) => workspaceId),
      all.map(({ network }) => network),
      all.map(({ canonical }) => canonical),
      all.map(({ hasSwaps }) => hasSwaps),
      all.map(({ showsSignatures }) => showsSignatures),
    )
    return new Map(rows.map((row) => [keys[row.place - 1] as string, row]))
  }
}
