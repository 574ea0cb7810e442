/** The source of a template: a snapshot of an agent, or a folder of a repository. */
import type { Network } from '../../storage/port.ts'
import type { Described } from './describe.ts'
import type { GitOrigin } from './git/hosts.ts'

/** Maximum number of paths listed for a source. */
export const MAX_PATHS = 1000

/** A folder on IPFS. */
export interface StoredFolder {
  network: Network
  /** CIDv1 in base32. */
  cid: string
  /** Paths of executable files. */
  executables: string[]
}

export interface TemplateSource {
  readme: string | null
  /** The template, or its problems, one line each. */
  described: Described | { errors: string[] }
  commitSha: string
  /** Version of the engine that it is made for. */
  engineVersion: string
  /** Null for a snapshot. */
  git: GitOrigin | null
  /** Paths of its files, at most {@link MAX_PATHS}. @throws StorageError */
  paths(): Promise<string[]>
  /** Stores and pins its files on IPFS. Nothing references a repository's files yet. @throws ApiError, StorageError */
  store(): Promise<StoredFolder>
}
