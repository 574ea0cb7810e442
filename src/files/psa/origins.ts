import { ApiError } from '../../errors.ts'
import { text } from '../../http/shapes.ts'
import { parseHostNode } from '../host-nodes.ts'

const address = text(1024)

/** As many as a pin by CID may have host nodes. */
const KEPT_ORIGINS = 20

/**
 * The first 20 origins that may be dialled, as multiaddrs. The others are left out and not refused: a node
 * names all of its addresses, those of its local networks too, and dialling origins is best effort.
 */
export function readOrigins(origins: string[], allowPrivate: boolean): string[] {
  const read = origins.flatMap((origin) => {
    if (!address.safeParse(origin).success) return []
    try {
      return [parseHostNode(origin, 'origins', allowPrivate)]
    } catch (error) {
      if (error instanceof ApiError) return []
      throw error
    }
  })
  return read.slice(0, KEPT_ORIGINS)
}
