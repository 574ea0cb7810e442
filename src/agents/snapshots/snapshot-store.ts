/**
 * The history of an agent's workspace: rows of `snapshot`, each of which keeps its content on IPFS. The newest matches
 * the workspace; a reset adds its target snapshot again.
 */
import { isDeepStrictEqual } from 'node:util'
import { UUID, uuidv7 } from 'uuidv7'
import { type Cursor, newestFirst } from '../../db/cursor.ts'
import type { Queryable } from '../../db/pool.ts'
import type { Prisma, PrismaClient } from '../../db/prisma.ts'
import { findLastSync, pruneHistory, removeHistory } from '../../db/statements/snapshots.ts'
import { releaseContent } from '../../files/held-content.ts'
import type { Network } from '../../storage/port.ts'
import type { Agent } from '../agent.ts'
import { type Extras, readExtras } from './repository.ts'
import type { SnapshotRecord } from './snapshot-schema.ts'

/** Number of snapshots in a history by default. */
export const SHOWN = 10

/** The data of a snapshot to be written. */
export interface Content {
  network: Network
  /** CIDv1 in base32. */
  cid: string
  commitSha: string
  /** The commit in git's stored form, without its header. */
  commitObject: Buffer
  treeSha: string
  /** Paths of executable files. */
  executables: string[]
  /** The parts of the workspace that the tree lacks; null if unknown. */
  extras: Extras | null
}

export interface StoredSnapshot extends Content {
  id: string
}

/** The difference from the previous snapshot; null if unknown. */
export interface Difference {
  changeSummary: string | null
  contentDiff: string | null
}

const STORED = {
  id: true,
  network: true,
  cid: true,
  commitSha: true,
  commitObject: true,
  treeSha: true,
  executables: true,
  extras: true,
} as const

type Row = Pick<Agent, 'id'>

/** The newest snapshot. */
export const latestSnapshot = (
  prisma: Prisma.TransactionClient,
  { id }: Row,
): Promise<StoredSnapshot | undefined> => findNewest(prisma, { agentId: id })

/** The newest of an agent's snapshots with this content. @param cid CIDv1 in base32. */
export const findSnapshot = (
  prisma: Prisma.TransactionClient,
  { id }: Row,
  cid: string,
): Promise<StoredSnapshot | undefined> => findNewest(prisma, { agentId: id, cid })

async function findNewest(
  prisma: Prisma.TransactionClient,
  where: Prisma.SnapshotWhereInput,
): Promise<StoredSnapshot | undefined> {
  const found = await prisma.snapshot.findFirst({ where, orderBy: { id: 'desc' }, select: STORED })
  if (!found) return undefined
  const { network, commitObject, extras } = found
  return {
    ...found,
    network: network as Network,
    commitObject: Buffer.from(commitObject),
    extras: readExtras(extras),
  }
}

/** The newest {@link SHOWN} snapshots, newest first. */
export async function listSnapshots(
  prisma: PrismaClient,
  agent: Pick<Agent, 'id' | 'agentId'>,
): Promise<SnapshotRecord[]> {
  const rows = await readHistory(prisma, agent, { after: undefined, limit: SHOWN })
  return rows.map(({ id: _, ...snapshot }) => snapshot)
}

/** A page of a history, newest first. */
export async function readHistory(
  prisma: PrismaClient,
  { id: agentRow, agentId }: Pick<Agent, 'id' | 'agentId'>,
  cursor: Cursor,
): Promise<(SnapshotRecord & { id: string })[]> {
  const rows = await prisma.snapshot.findMany({
    ...newestFirst(cursor, { agentId: agentRow }),
    omit: { commitObject: true, executables: true, extras: true },
  })
  return rows.map(({ id, cid, userId, commitSha, changeSummary, contentDiff, createdAt }) => ({
    id,
    agentId,
    snapshotCid: cid,
    userId,
    commitSha,
    changeSummary,
    contentDiff,
    createdAt: createdAt.toISOString(),
  }))
}

/** Adds a snapshot to the history, as the newest. The caller keeps its content pinned, and the agent's row locked. */
export async function insertSnapshot(
  tx: Prisma.TransactionClient,
  agent: Pick<Agent, 'id' | 'workspaceId' | 'userId'>,
  { network, cid, commitSha, commitObject, treeSha, executables, extras }: Content,
  { changeSummary, contentDiff }: Difference,
): Promise<void> {
  const newest = await latestSnapshot(tx, agent)
  await tx.snapshot.create({
    data: {
      id: idAfter(newest?.id),
      agentId: agent.id,
      workspaceId: agent.workspaceId,
      userId: agent.userId,
      network,
      cid,
      commitSha,
      commitObject: Uint8Array.from(commitObject),
      treeSha,
      executables,
      ...(extras && { extras }),
      changeSummary,
      contentDiff,
    },
  })
}

/** Updates the extras of the newest snapshot: they may change without its tree. */
export async function noteExtras(
  tx: Prisma.TransactionClient,
  agent: Row,
  { extras }: Content,
): Promise<void> {
  const newest = await latestSnapshot(tx, agent)
  if (!newest || !extras || isDeepStrictEqual(newest.extras, extras)) return
  await tx.snapshot.update({ where: { id: newest.id }, data: { extras } })
}

/** An id higher than another one, even if a clock was set back: ids order the history. */
export function idAfter(previous: string | undefined): string {
  const id = uuidv7()
  if (!previous || id > previous) return id
  const time = Number.parseInt(previous.replaceAll('-', '').slice(0, 12), 16)
  return UUID.fromFieldsV7(time + 1, 0, 0, 0).toString()
}

/**
 * Removes snapshots that the policy does not keep from a history, and releases their content; content with another row
 * stays. The policy keeps the newest `keep` snapshots, plus the last one of each of the last `keepDays` days, in UTC.
 */
export async function pruneSnapshots(
  db: Queryable,
  { id }: Row,
  { keep, keepDays }: { keep: number; keepDays: number },
): Promise<void> {
  await releaseContent(db, (await pruneHistory.run(db, id, keep, keepDays)).rows)
}

/** Removes a whole history, and releases its content. */
export async function removeSnapshots(db: Queryable, { id }: Row): Promise<void> {
  await releaseContent(db, (await removeHistory.run(db, id)).rows)
}

/** Why the last sync of an agent failed, for people; undefined if it succeeded, or if there was none. */
export async function lastFailure(
  db: Queryable,
  { agentId }: Pick<Agent, 'agentId'>,
): Promise<string | undefined> {
  const last = await findLastSync.first(db, agentId)
  return last?.state === 'failed' ? (last.reason ?? undefined) : undefined
}
