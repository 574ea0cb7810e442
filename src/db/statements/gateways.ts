import { isoTime, statement } from './statement.ts'

const gateway = {
  id: 'uuid',
  workspaceId: 'uuid',
  domain: 'text',
  hasSwaps: 'bool',
  innerCids: 'bool',
  cidHosts: 'bool',
  showsSignatures: 'bool',
  tokenHashes: 'text[]',
} as const
const GATEWAY = `g.id, g.workspace_id AS "workspaceId", g.domain, g.hot_swaps AS "hasSwaps",
  g.inner_cids AS "innerCids", g.cid_hosts AS "cidHosts", g.shows_signatures AS "showsSignatures",
  array(SELECT encode(token_hash, 'hex') FROM gateway_access_token WHERE gateway_id = g.id) AS "tokenHashes"`

/**
 * The gateway of a domain, with its tokens' hashes in hex. Hand-written SQL, because every request to a gateway may
 * need it.
 */
export const findGateway = statement({
  name: 'gateway-find',
  parameters: ['text'],
  columns: gateway,
  text: `SELECT ${GATEWAY} FROM gateway g WHERE g.domain = $1`,
})

/**
 * The gateway of a verified custom domain. Hand-written SQL, because every request to a host that is not one of Berth's
 * may need it.
 */
export const findGatewayAt = statement({
  name: 'gateway-find-custom',
  parameters: ['text'],
  columns: gateway,
  text: `SELECT ${GATEWAY} FROM domain JOIN gateway g ON g.id = domain.gateway_id
    WHERE domain.custom_domain = $1 AND domain.status = 'verified'`,
})

/**
 * For each position in the lists, numbered from 1: the oldest unexpired file of a workspace (`$1`) on a network with
 * the given content. With `$4`, the requested CID (`$3`) is replaced by its swap; with `$5`, the signature is included.
 * No row if there is no file. Hand-written SQL, because every download needs it. Each list is inside a SELECT, so that
 * the planner does not know its length: otherwise it would plan again for each short list, which takes five times as
 * long as running the statement.
 */
export const findGatewayContents = statement({
  name: 'gateway-contents',
  parameters: ['uuid[]', 'text[]', 'text[]', 'bool[]', 'bool[]'],
  columns: { place: 'int4', swappedTo: 'text?', name: 'text?', mimeType: 'text?', signature: 'text?' },
  text: `SELECT asked.place::int, swap.mapped_cid_v1 AS "swappedTo", file.name, file.mime_type AS "mimeType", signature
    FROM unnest((SELECT $1::uuid[]), (SELECT $2::text[]), (SELECT $3::text[]), (SELECT $4::bool[]), (SELECT $5::bool[]))
      WITH ORDINALITY AS asked (workspace_id, network, cid_v1, with_swaps, with_signature, place)
    LEFT JOIN LATERAL (
      SELECT mapped_cid_v1 FROM swap
      WHERE asked.with_swaps AND workspace_id = asked.workspace_id AND network = asked.network AND cid_v1 = asked.cid_v1
      ORDER BY id DESC LIMIT 1
    ) swap ON true
    CROSS JOIN LATERAL (
      SELECT cid_v1, name, mime_type FROM file
      WHERE workspace_id = asked.workspace_id AND network = asked.network
        AND cid_v1 = coalesce(swap.mapped_cid_v1, asked.cid_v1) AND status = 'pinned' AND removed_at IS NULL
        AND (expires_at IS NULL OR expires_at > now())
      ORDER BY id LIMIT 1
    ) file
    LEFT JOIN LATERAL (
      SELECT signature FROM cid_signature
      WHERE asked.with_signature AND workspace_id = asked.workspace_id AND network = asked.network
        AND cid_signature.cid_v1 = file.cid_v1
      LIMIT 1
    ) signed ON true`,
})

/**
 * The signature for content of a workspace. Hand-written SQL, because a gateway needs it for each download of content
 * inside a file.
 */
export const findSignature = statement({
  name: 'gateway-signature',
  parameters: ['uuid', 'text', 'text'],
  columns: { signature: 'text' },
  text: 'SELECT signature FROM cid_signature WHERE workspace_id = $1 AND network = $2 AND cid_v1 = $3',
})

/**
 * The CIDs of a workspace's newest `$2` unexpired public files. Hand-written SQL, so that it uses the index of lists.
 */
export const listGatewayFiles = statement({
  name: 'gateway-files',
  parameters: ['uuid', 'int8'],
  columns: { cid: 'text' },
  text: `SELECT cid_v1 AS cid FROM file
    WHERE workspace_id = $1 AND network = 'public' AND status = 'pinned' AND removed_at IS NULL
      AND (expires_at IS NULL OR expires_at > now())
    ORDER BY id DESC LIMIT $2`,
})

// Swaps, which a plugin of gateways serves. Hand-written SQL: responses show times with microseconds, which Prisma
// truncates, and a swap is checked and written under a lock of its transaction.

const ENTRY = `mapped_cid, ${isoTime('created_at')} AS created_at`
const OF_ORIGINAL = 'FROM swap WHERE workspace_id = $1 AND network = $2 AND cid_v1 = $3 ORDER BY id DESC'
const entry = { mapped_cid: 'text?', created_at: 'text' } as const

/** The entry in force, including its new CID in canonical form. */
export const newestSwap = statement({
  name: 'swap-newest',
  parameters: ['uuid', 'text', 'text'],
  columns: { ...entry, mapped_cid_v1: 'text?' },
  text: `SELECT ${ENTRY}, mapped_cid_v1 ${OF_ORIGINAL} LIMIT 1`,
})

/** The newest `$4` entries. */
export const listSwaps = statement({
  name: 'swap-history',
  parameters: ['uuid', 'text', 'text', 'int8'],
  columns: entry,
  text: `SELECT ${ENTRY} ${OF_ORIGINAL} LIMIT $4`,
})

const isFile = (cid: string) => `EXISTS (SELECT FROM file WHERE workspace_id = $1 AND network = $2
  AND cid_v1 = ${cid} AND status = 'pinned' AND removed_at IS NULL)`

/** Whether a workspace may swap, and has files with the original (`$3`) and the new CID (`$4`). */
export const checkSwap = statement({
  name: 'swap-check',
  parameters: ['uuid', 'text', 'text', 'text'],
  columns: { inPlan: 'bool', hasOriginal: 'bool', hasTarget: 'bool' },
  text: `SELECT plan.hot_swaps AS "inPlan", ${isFile('$3')} AS "hasOriginal", ${isFile('$4')} AS "hasTarget"
    FROM workspace JOIN plan ON plan.name = workspace.plan WHERE workspace.id = $1`,
})

export const insertSwap = statement({
  name: 'swap-insert',
  parameters: ['uuid', 'text', 'text', 'text?', 'text?'],
  columns: entry,
  text: `INSERT INTO swap (workspace_id, network, cid_v1, mapped_cid, mapped_cid_v1)
    VALUES ($1, $2, $3, $4, $5) RETURNING ${ENTRY}`,
})

/** Enables the plugin on the oldest gateway of a workspace that has never swapped, unless another gateway has it. */
export const installSwaps = statement({
  name: 'swap-install',
  parameters: ['uuid'],
  columns: {},
  text: `UPDATE gateway SET hot_swaps = true
    WHERE id = (SELECT id FROM gateway WHERE workspace_id = $1 ORDER BY id LIMIT 1)
      AND NOT EXISTS (SELECT FROM gateway WHERE workspace_id = $1 AND hot_swaps)
      AND NOT EXISTS (SELECT FROM swap WHERE workspace_id = $1)`,
})
