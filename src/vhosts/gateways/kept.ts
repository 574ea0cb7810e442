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
  /** Null where it has none, or the gateway does not show it. */
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
 * The look at the database that each request of a gateway takes. What is asked for in one turn of the event loop shares
 * one query, which begins after the last of them: so each sees all that was committed before it came.
 */
export class KeptLookups {
  readonly #pool: Pool
  /** The lookups that wait for the next query; null where none do. */
  #gathered: { asked: Map<string, Asked>; found: Promise<Map<string, Found>> } | null = null

  constructor(pool: Pool) {
    this.#pool = pool
  }

  /**
   * The file that a gateway serves for a CID: what the CID is swapped to, where the gateway has the plugin, else
   * the content itself. Undefined where the gateway's workspace does not keep it on this network, or no more.
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
    // In the version that was asked for: clients look for that in a CAR.
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
