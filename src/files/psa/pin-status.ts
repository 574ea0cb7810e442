/** A file or pin request as the Pinning Service API shows it. */
import { createdAt, type PinRow } from './list.ts'
import { type PinStatus, STATUSES, type Status } from './schema.ts'

const NAMES = new Map<string, Status>(
  Object.entries(STATUSES).flatMap(([name, statuses]) => statuses.map((status) => [status, name as Status])),
)

/** @param delegates addresses of the IPFS node. */
export function toPinStatus(row: PinRow, delegates: string[]): PinStatus {
  const status = NAMES.get(row.status)
  if (!status) throw new Error(`A file has the status ${row.status}`)
  return {
    requestid: row.id,
    status,
    created: new Date(createdAt(row.id)).toISOString(),
    pin: {
      cid: row.cid,
      ...(row.name !== null && { name: row.name }),
      origins: row.host_nodes,
      meta: row.keyvalues,
    },
    delegates,
    info: status === 'pinned' ? stored(row) : { status_details: details(status, row) },
  }
}

function stored({ size, expires_at }: PinRow): Record<string, string> {
  return { raw_size: `${size}`, ...(expires_at !== null && { pinned_until: expires_at }) }
}

/** Berth's own status, which is finer, and what is known about it. */
function details(name: Status, { status, error, progress }: PinRow): string {
  if (name === 'failed' && error !== null) return `${status}: ${error}`
  if (status === 'retrieving' && progress)
    return `${status}: ${progress.blocks} blocks, ${progress.bytes} bytes`
  return status
}
