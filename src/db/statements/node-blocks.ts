/**
 * Blocks of an embedded IPFS node whose blocks are in S3. Hand-written SQL: a statement is about hundreds of blocks, locks
 * their rows in one order, so that two never wait for each other, and only takes times from the database's clock.
 */
import { narrow, statement } from './statement.ts'

/** Multihashes. */
const HASHES = narrow<Uint8Array[]>('bytea[]')
const HASH = narrow<Buffer>('bytea')
const PLACE = {
  hash: HASH,
  size: 'int4',
  pack_id: 'uuid?',
  at: 'int4?',
  /** Null for a block in a pack. */
  bytes: narrow<Buffer | null>('bytea'),
  linkless: 'int4?',
} as const

/** Where blocks are; missing ones have no row. */
export const findBlocks = statement({
  name: 'node-block-find',
  parameters: ['text', HASHES],
  columns: PLACE,
  text: `SELECT hash, size, pack_id, at, bytes, linkless FROM node_block WHERE network = $1 AND hash = ANY ($2)`,
})

/** The sizes of blocks, and whether their last use is at least `$3` ms ago. */
export const sizeBlocks = statement({
  name: 'node-block-size',
  parameters: ['text', HASHES, 'float8'],
  columns: { hash: HASH, size: 'int4', old: 'bool' },
  text: `SELECT hash, size, used_at <= clock_timestamp() - $3 * interval '1 ms' AS old
    FROM node_block WHERE network = $1 AND hash = ANY ($2)`,
})

/** Blocks that count as used from now on. Blocks that a collection has just removed are missing. */
export const touchBlocks = statement({
  name: 'node-block-touch',
  parameters: ['text', HASHES],
  columns: { hash: HASH },
  text: `WITH found AS MATERIALIZED (
      SELECT hash FROM node_block WHERE network = $1 AND hash = ANY ($2) ORDER BY hash FOR NO KEY UPDATE)
    UPDATE node_block b SET used_at = clock_timestamp() FROM found
    WHERE b.network = $1 AND b.hash = found.hash RETURNING b.hash`,
})

/** Rows of new blocks, in a pack or with their bytes; they replace rows of the same blocks. */
export const putBlocks = statement({
  name: 'node-block-put',
  parameters: [
    'text',
    HASHES,
    'int4[]',
    narrow<string | null>('uuid'),
    narrow<(number | null)[]>('int4[]'),
    narrow<(Uint8Array | null)[]>('bytea[]'),
    'bool[]',
    narrow<(number | null)[]>('int4[]'),
  ],
  columns: {},
  text: `INSERT INTO node_block AS b (network, hash, size, pack_id, at, bytes, is_node, linkless)
    SELECT $1, hash, size, CASE WHEN bytes IS NULL THEN $4::uuid END, at, bytes, is_node, linkless
    FROM unnest($2::bytea[], $3::int4[], $5::int4[], $6::bytea[], $7::bool[], $8::int4[])
      AS given (hash, size, at, bytes, is_node, linkless) ORDER BY hash
    ON CONFLICT (network, hash) DO UPDATE SET size = excluded.size, pack_id = excluded.pack_id, at = excluded.at,
      bytes = excluded.bytes, is_node = excluded.is_node, linkless = coalesce(excluded.linkless, b.linkless),
      used_at = clock_timestamp()`,
})

/** Before its object exists, so that no object is without a row. */
export const beginPack = statement({
  name: 'node-pack-begin',
  parameters: ['uuid', 'text', 'int8'],
  columns: {},
  text: `INSERT INTO node_pack (id, network, bytes) VALUES ($1, $2, $3)`,
})

/** Declares that a pack is stored; no row if a collection has given it up. */
export const endPack = statement({
  name: 'node-pack-end',
  parameters: ['uuid'],
  columns: {},
  text: `UPDATE node_pack SET state = 'stored', changed_at = clock_timestamp() WHERE id = $1 AND state = 'writing'`,
})

/** Blocks to collect or to count, `$3` rows in the order of their hashes. `old`: not used since `$4`. */
export const pageBlocks = statement({
  name: 'node-block-page',
  parameters: ['text', HASH, 'int8', 'timestamptz'],
  columns: { hash: HASH, size: 'int4', pack_id: 'uuid?', old: 'bool' },
  text: `SELECT hash, size, pack_id, used_at < $4 AS old FROM node_block WHERE network = $1 AND hash > $2
    ORDER BY hash LIMIT $3`,
})

/** Removes blocks that were not used since `$3`: a user who comes first keeps them, and one who comes later finds none. */
export const removeBlocks = statement({
  name: 'node-block-remove',
  parameters: ['text', HASHES, 'timestamptz'],
  columns: { hash: HASH, size: 'int4' },
  text: `WITH old AS MATERIALIZED (
      SELECT hash FROM node_block WHERE network = $1 AND hash = ANY ($2) AND used_at < $3 ORDER BY hash FOR UPDATE)
    DELETE FROM node_block b USING old WHERE b.network = $1 AND b.hash = old.hash RETURNING b.hash, b.size`,
})

/** The blocks of packs. */
export const packedBlocks = statement({
  name: 'node-block-packed',
  parameters: ['uuid[]'],
  columns: { hash: HASH, size: 'int4', pack_id: 'uuid?', at: 'int4?', bytes: narrow<Buffer | null>('bytea') },
  text: `SELECT hash, size, pack_id, at, bytes FROM node_block WHERE pack_id = ANY ($1)`,
})

/** Blocks that wait for a pack, oldest first: at most `$3` blocks of about `$2` bytes. */
export const waitingBlocks = statement({
  name: 'node-block-waiting',
  parameters: ['text', 'int8', 'int8'],
  columns: { hash: HASH, size: 'int4', pack_id: 'uuid?', at: 'int4?', bytes: narrow<Buffer | null>('bytea') },
  text: `WITH first AS MATERIALIZED (
      SELECT hash, sum(size) OVER (ORDER BY used_at, hash) - size AS bytes_before FROM node_block
      WHERE network = $1 AND pack_id IS NULL AND NOT is_node ORDER BY used_at, hash LIMIT $3)
    SELECT b.hash, b.size, b.pack_id, b.at, b.bytes FROM first
    JOIN node_block b ON b.network = $1 AND b.hash = first.hash WHERE bytes_before < $2`,
})

/**
 * Moves blocks into the pack `$2`, each from the pack in `$5`, or from its row if that is null. Blocks that are no longer
 * there stay where they are.
 */
export const moveBlocks = statement({
  name: 'node-block-move',
  parameters: ['text', 'uuid', HASHES, 'int4[]', narrow<(string | null)[]>('uuid[]')],
  columns: {},
  text: `WITH given AS (SELECT * FROM unnest($3::bytea[], $4::int4[], $5::uuid[]) AS g (hash, at, former)),
    found AS MATERIALIZED (
      SELECT b.hash, g.at FROM node_block b JOIN given g USING (hash)
      WHERE b.network = $1 AND b.pack_id IS NOT DISTINCT FROM g.former AND NOT b.is_node
      ORDER BY b.hash FOR UPDATE OF b)
    UPDATE node_block b SET pack_id = $2, at = found.at, bytes = NULL FROM found
    WHERE b.network = $1 AND b.hash = found.hash`,
})

/**
 * Gives up packs: those of writers who must be dead after `$2` seconds, and those of `$3` that have no block. Their blocks
 * are gone for good, because only the writer of a pack gives it blocks, at once and only while it is `writing`.
 */
export const giveUpPacks = statement({
  name: 'node-pack-give-up',
  parameters: ['text', 'float8', 'uuid[]'],
  columns: {},
  text: `UPDATE node_pack p SET state = 'dead', changed_at = clock_timestamp() WHERE network = $1 AND (
      (state = 'writing' AND changed_at < clock_timestamp() - $2 * interval '1 s')
      OR (id = ANY ($3) AND state = 'stored' AND NOT EXISTS (SELECT FROM node_block WHERE pack_id = p.id)))`,
})

/** Packs whose object is to be removed; `last` if they have been dead for `$2` seconds, so that nobody can still write it. */
export const deadPacks = statement({
  name: 'node-pack-dead',
  parameters: ['text', 'float8'],
  columns: { id: 'uuid', last: 'bool' },
  text: `SELECT id, changed_at < clock_timestamp() - $2 * interval '1 s' AS last FROM node_pack
    WHERE network = $1 AND state = 'dead' ORDER BY changed_at`,
})

/** Which of these packs have blocks, or may still get some. */
export const findPacks = statement({
  name: 'node-pack-find',
  parameters: ['text', 'uuid[]'],
  columns: { id: 'uuid' },
  text: `SELECT id FROM node_pack WHERE network = $1 AND id = ANY ($2) AND state <> 'dead'`,
})

export const forgetPacks = statement({
  name: 'node-pack-forget',
  parameters: ['uuid[]'],
  columns: {},
  text: `DELETE FROM node_pack WHERE id = ANY ($1) AND state = 'dead'`,
})

/** Packs that were stored before `$4`, with their sizes: `$3` rows in the order of their ids. */
export const pagePacks = statement({
  name: 'node-pack-page',
  parameters: ['text', 'uuid', 'int8', 'timestamptz'],
  columns: { id: 'uuid', bytes: 'float8' },
  text: `SELECT id, bytes::float8 AS bytes FROM node_pack WHERE network = $1 AND id > $2 AND state = 'stored'
    AND changed_at < $4 ORDER BY id LIMIT $3`,
})
