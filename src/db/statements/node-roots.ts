/** Pins of an embedded IPFS node whose blocks are in S3, and its index. Hand-written SQL: times are from the database. */
import { narrow, statement } from './statement.ts'

/** The id of the index, given once. */
export const readStore = statement({
  name: 'node-store',
  parameters: ['text'],
  columns: { id: 'uuid', used: 'bool' },
  text: `WITH made AS (
      INSERT INTO node_store (network, id) VALUES ($1, gen_random_uuid()) ON CONFLICT DO NOTHING RETURNING id)
    SELECT id, EXISTS (SELECT FROM node_pack WHERE network = $1) AS used
    FROM (SELECT id FROM made UNION ALL SELECT id FROM node_store WHERE network = $1) AS known`,
})

/** Which of these CIDs are pinned. */
export const findRoots = statement({
  name: 'node-root-find',
  parameters: ['text', 'text[]'],
  columns: { cid: 'text' },
  text: `SELECT cid FROM node_root WHERE network = $1 AND cid = ANY ($2)`,
})

/** In one order, so that two statements never wait for each other. */
export const addRoots = statement({
  name: 'node-root-add',
  parameters: ['text', 'text[]'],
  columns: {},
  text: `INSERT INTO node_root (network, cid) SELECT $1, cid FROM unnest($2::text[]) AS cid ORDER BY cid
    ON CONFLICT DO NOTHING`,
})

export const removeRoot = statement({
  name: 'node-root-remove',
  parameters: ['text', 'text'],
  columns: {},
  text: `DELETE FROM node_root WHERE network = $1 AND cid = $2`,
})

export const pageRoots = statement({
  name: 'node-root-page',
  parameters: ['text', 'text', 'int8'],
  columns: { cid: 'text' },
  text: `SELECT cid FROM node_root WHERE network = $1 AND cid > $2 ORDER BY cid LIMIT $3`,
})

/** The pins in progress, and the cutoff: a block that was used since then stays without a root. */
export const readMarks = statement({
  name: 'node-mark-read',
  parameters: ['text', 'float8'],
  columns: { now: 'timestamptz', cids: 'text[]', cutoff: 'timestamptz' },
  text: `SELECT clock_timestamp() AS now,
      ARRAY(SELECT cid FROM node_mark WHERE network = $1 AND cid IS NOT NULL) AS cids,
      least(clock_timestamp(), (SELECT min(started_at) FROM node_mark WHERE network = $1 AND cid IS NULL))
        - $2 * interval '1 ms' AS cutoff`,
})

export const addMarks = statement({
  name: 'node-mark-add',
  parameters: ['text', 'uuid[]', narrow<(string | null)[]>('text[]')],
  columns: {},
  text: `INSERT INTO node_mark (id, network, cid) SELECT id, $1, cid FROM unnest($2::uuid[], $3::text[]) AS given (id, cid)`,
})

export const renewMark = statement({
  name: 'node-mark-renew',
  parameters: ['uuid'],
  columns: {},
  text: `UPDATE node_mark SET renewed_at = clock_timestamp() WHERE id = $1`,
})

export const removeMarks = statement({
  name: 'node-mark-remove',
  parameters: ['uuid[]'],
  columns: {},
  text: `DELETE FROM node_mark WHERE id = ANY ($1)`,
})

/** Removes the marks of processes that must be dead after `$2` ms. */
export const expireMarks = statement({
  name: 'node-mark-expire',
  parameters: ['text', 'float8'],
  columns: {},
  text: `DELETE FROM node_mark WHERE network = $1 AND renewed_at < clock_timestamp() - $2 * interval '1 ms'`,
})
