/** Reads a folder of a repository as a potential template. */

import { MANIFEST_BYTES } from '../../../../agentd/manifest-check.ts'
import type { TreeChange } from '../../../../agentd/repository/protocol.ts'
import { badRequest, messages } from '../../../errors.ts'
import { storableText } from '../../../lib/read.ts'
import { within } from '../../../lib/signals.ts'
import type { Storage } from '../../../storage/port.ts'
import type { AgentServices } from '../../agent-route.ts'
import { buildSnapshot } from '../../snapshots/index.ts'
import { describeTemplate } from '../describe.ts'
import { README_BYTES } from '../inspect.ts'
import { MAX_PATHS, type StoredFolder, type TemplateSource } from '../source.ts'
import type { GitHosts, GitOrigin, GitTree } from './hosts.ts'
import type { GitFile } from './tree.ts'

const STORE_MS = 60_000

/** Reads a repository's own description as a template. @throws ApiError as {@link GitHosts.tree}. */
export async function inspectRepository(
  { config, storages }: Pick<AgentServices, 'config' | 'storages'>,
  hosts: GitHosts,
  origin: GitOrigin,
  asked: Parameters<GitHosts['tree']>[1],
): Promise<TemplateSource> {
  const tree = await hosts.tree(origin, asked)
  const { commitSha, files, problems } = tree
  const readme = textOf(tree, 'README.md', README_BYTES)
  const described = describeTemplate({
    manifest: textOf(tree, 'manifest.json', MANIFEST_BYTES),
    readme,
    hasWorkspace: files.some(({ path }) => path.startsWith('workspace/')),
  })
  const errors = [...('errors' in described ? described.errors : []), ...problems]
  const network = config.BERTH_SNAPSHOT_NETWORK
  return {
    readme,
    described: errors.length > 0 ? { errors } : described,
    commitSha,
    engineVersion: config.BERTH_ENGINE_VERSIONS[0],
    git: origin,
    paths: async () => files.slice(0, MAX_PATHS).map(({ path }) => path),
    async store() {
      if (network === 'none') throw badRequest(messages.storageNotConfigured)
      const signal = within(STORE_MS, asked.signal)
      return { network, ...(await storeTree(storages[network], tree, signal)) }
    },
  }
}

async function storeTree(
  storage: Storage,
  { files, contents }: GitTree,
  signal: AbortSignal,
): Promise<Omit<StoredFolder, 'network'>> {
  const { cid } = await buildSnapshot(storage, {
    base: null,
    changes: changesOf(files),
    async *read(blobs) {
      for (const blob of blobs) yield { blob, content: once(contents.get(blob)) }
    },
    signal,
  })
  return { cid: `${cid}`, executables: files.flatMap(({ path, mode }) => (mode === '100755' ? [path] : [])) }
}

async function* changesOf(files: GitFile[]): AsyncGenerator<TreeChange> {
  for (const file of files) yield { ...file, isNew: true }
}

async function* once(bytes: Buffer | undefined): AsyncGenerator<Uint8Array> {
  if (bytes && bytes.length > 0) yield bytes
}

/** A text file, cut after `maxBytes` and made storable for PostgreSQL; null if there is none. */
function textOf({ files, contents }: GitTree, path: string, maxBytes: number): string | null {
  const file = files.find((one) => one.path === path && one.mode !== '120000')
  const bytes = file && contents.get(file.blob)
  if (!bytes) return null
  // One byte more than the limit, so that a file that is too large does not pass as its beginning.
  return storableText(bytes.subarray(0, maxBytes + 1).toString('utf8'))
}
