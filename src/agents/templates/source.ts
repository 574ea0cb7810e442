/** The source of a template: a snapshot of an agent, or a folder of a repository. */
import type { Network } from '../../storage/port.ts'
import type { Described } from './describe.ts'
import type { GitOrigin } from './git/hosts.ts'

/** Most paths that are listed of a source. */
export const MAX_PATHS = 1000

/** A folder on IPFS. */
export interface StoredFolder {
  network: Network
  /** CIDv1 in base32. */
  cid: string
  /** Paths of files that are executable. */
  executables: string[]
}

export interface TemplateSource {
  readme: string | null
  /** The template, or its problems, a line each. */
  described: Described | { errors: string[] }
  commitSha: string
  /** Version of the engine that it is for. */
  engineVersion: string
  /** Null for a snapshot. */
  git: GitOrigin | null
  /** Paths of its files, at most {@link MAX_PATHS}. @throws StorageError */
  paths(): Promise<string[]>
  /** Has its files on IPFS, and pinned; nothing keeps those of a repository yet. @throws ApiError, StorageError */
  store(): Promise<StoredFolder>
}
