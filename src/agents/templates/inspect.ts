/** Reads an agent's snapshot as a potential template. */

import { CID } from 'multiformats/cid'
import { MANIFEST_BYTES } from '../../../agentd/manifest-check.ts'
import { ignoring, messages, notFound } from '../../errors.ts'
import { storableText } from '../../lib/read.ts'
import { within } from '../../lib/signals.ts'
import { listPaths } from '../../storage/dag/folder.ts'
import type { Storage } from '../../storage/port.ts'
import type { Agent } from '../agent.ts'
import type { AgentServices } from '../agent-route.ts'
import { findSnapshot, latestSnapshot } from '../snapshots/index.ts'
import { describeTemplate } from './describe.ts'
import { MAX_PATHS, type TemplateSource } from './source.ts'

export const README_BYTES = 1_048_576
/** Time limit for a whole snapshot. */
const READ_MS = 30_000

/**
 * Reads a snapshot's own description as a template.
 * @param cid CIDv1 in base32; undefined for the newest snapshot.
 * @throws ApiError 404 `Snapshot not found` if it is not in the agent's history; StorageError.
 */
export async function inspectSnapshot(
  { prisma, storages }: Pick<AgentServices, 'prisma' | 'storages'>,
  agent: Agent,
  cid: string | undefined,
  signal: AbortSignal,
): Promise<TemplateSource> {
  const snapshot = cid ? await findSnapshot(prisma, agent, cid) : await latestSnapshot(prisma, agent)
  if (!snapshot) throw notFound(messages.snapshotNotFound)
  const source = {
    storage: storages[snapshot.network],
    root: CID.parse(snapshot.cid),
    signal: within(READ_MS, signal),
  }
  // The root must exist here; otherwise every file would seem to be missing.
  await source.storage.resolve(source.root, { signal: source.signal })
  const [manifest, readme, workspace] = await Promise.all([
    readText(source, 'manifest.json', MANIFEST_BYTES),
    readText(source, 'README.md', README_BYTES),
    lookUp(source, 'workspace'),
  ])
  const hasWorkspace = workspace?.type === 'directory'
  return {
    readme,
    described: describeTemplate({ manifest, readme, hasWorkspace }),
    commitSha: snapshot.commitSha,
    engineVersion: agent.engineVersion,
    git: null,
    paths: () => listFiles(storages[snapshot.network], snapshot.cid, signal),
    store: async () => snapshot,
  }
}

/** Paths of the files in a snapshot, in git's order. */
async function listFiles(storage: Storage, cid: string, signal: AbortSignal): Promise<string[]> {
  const bounded = within(READ_MS, signal)
  const paths = await listPaths(storage, CID.parse(cid), { max: MAX_PATHS, signal: bounded })
  return paths.sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
}

interface Source {
  storage: Storage
  root: CID
  signal: AbortSignal
}

const lookUp = ({ storage, root, signal }: Source, path: string) =>
  storage.resolve(root, { path, signal }).catch(ignoring('not_found'))

/** A text file, cut after `maxBytes` and made storable for PostgreSQL; null if there is none. */
async function readText(source: Source, path: string, maxBytes: number): Promise<string | null> {
  if ((await lookUp(source, path))?.type !== 'file') return null
  const { storage, root, signal } = source
  const chunks: Uint8Array[] = []
  // One byte more than the limit, so that a file that is too large does not pass as its beginning.
  for await (const chunk of storage.cat(root, { path, length: maxBytes + 1, signal })) chunks.push(chunk)
  return storableText(Buffer.concat(chunks).toString('utf8'))
}
