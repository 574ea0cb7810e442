/** The part of the protocol between agentd and Berth that is about the agent's repository: types only, as in ../protocol.ts. */

/**
 * The agent's root is a git repository; only agentd and the agent itself touch it. What changes it here (`commit`, `reset`,
 * `adopt`, a push) happens one after the other. Commits are 40 hex digits.
 *
 * `GET /v1/repository`: how it is now.
 */
export interface RepositoryStatus {
  /** Null before the first commit. */
  head: string | null
  /** True where there is something to commit. */
  dirty: boolean
  /** The commit that was pushed and not taken over yet, see `DELETE /v1/repository/pushed`. Survives agentd. */
  pushed: string | null
}

/**
 * `POST /v1/repository/commit` (fenced): updates `skills` and `secrets` of manifest.json if they are given, then commits
 * all changes. Files that must not leave the agent stay out: those that `.gitignore` or agentd's own list excludes, and
 * those that contain the value of a secret or what looks like a key. If nothing has changed, it returns the
 * existing commit. The tree has only files and symlinks with names in UTF-8: repositories within the repository are kept
 * as files. A secret that the manifest declares stays in it even if the agent does not have it.
 */
export interface CommitRequest {
  message: string
  manifest?: { skills: { name: string; cid: string }[]; secrets: { name: string }[] }
}
export interface Committed {
  commit: string
  /** Id of the commit's tree, 40 hex digits. */
  tree: string
  /** False where nothing had changed. */
  isNew: boolean
  /** The commit as git stores it, without its header, in base64. */
  object: string
  /** At most 20 paths that were left out though nothing ignores them, or stay as the last commit has them. */
  leftOut: string[]
  /** Why, for people, in the same order. */
  reasons: string[]
  /** The number of further paths that were left out. */
  more: number
  ignored: IgnoredFiles[]
  extras: Extras
}

/**
 * The parts of a workspace that git's trees lack. `PUT /v1/repository/extras` (fenced) restores them as far as it can, and
 * answers {@link ExtrasResult}.
 */
export interface Extras {
  /** Folders without any entry. */
  folders: string[]
  /** Permissions that git does not keep. */
  modes: { path: string; mode: number }[]
  /** Branches and tags. A tag's commit may be a tag object. */
  refs: { ref: string; commit: string }[]
  /** How many of these were left out of the lists. */
  more: number
}
export interface ExtrasResult {
  /** The parts that could not be restored, for people. */
  lost: string[]
}

/** Files and folders that one rule of an ignore file keeps out. */
export interface IgnoredFiles {
  /** `<pattern> of <file>`. */
  rule: string
  /** One of them. A folder's ends with `/`, and stands for all in it. */
  path: string
  count: number
}

/**
 * A line of `GET /v1/repository/changes?from=<commit>&to=<commit>` (NDJSON): a file of `to` that `from` has not, or has
 * otherwise, or a path that is gone. Without `from`: every file of `to`. 404 `not_found` where a commit is not there.
 * Sorted by path as git does. Submodules are left out, and so are names that are no UTF-8.
 */
export type TreeChange =
  | {
      path: string
      mode: '100644' | '100755' | '120000'
      blob: string
      size: number
      /** `from` has nothing under this path. */
      isNew: boolean
    }
  | { path: string; removed: true }

/**
 * `POST /v1/repository/blobs`: `{blobs: string[]}`, at most 1000. Streams for each one, in that order,
 * `<id> <size>\n<bytes>\n`. 404 `not_found` where one of them is not there.
 */
export interface BlobsRequest {
  blobs: string[]
}

/**
 * `GET /v1/repository/diff?from=&to=&max=`: the unified diff as text, cut after `max` bytes at a line's end; without `from`
 * against nothing. `GET /v1/repository/file?commit=&path=&max=`: a file's bytes as they are in a commit.
 * `GET /v1/repository/files?commit=&max=`: text, a line `<size> <path>` a file, cut after `max` bytes.
 * A cut answer has the header `truncated: true`.
 */

/**
 * `POST /v1/repository/reset` (fenced): the working tree becomes that of a commit, `HEAD`'s branch points to it; what the
 * repository ignores stays. What had changed is committed before, and what was there stays reachable. Answers `{commit}`;
 * 404 `not_found` where the commit is not there.
 */
export interface ResetRequest {
  commit: string
}

/**
 * `PUT /v1/repository/import` (fenced): a git-fast-import stream that makes one commit on `refs/berth/import`; answers
 * {@link Imported}. The working tree stays as it is. `POST /v1/repository/adopt` (fenced): makes a commit out of
 * `object` (as in {@link Committed}) whose tree is there, parents or not (the history begins there: git's `shallow`),
 * and answers `{commit}`. `DELETE /v1/repository/pushed?commit=<commit>` (fenced): it was taken over.
 */
export interface Imported {
  commit: string
  tree: string
}
export interface AdoptRequest {
  object: string
}

/**
 * `/v1/git/info/refs?service=…`, `/v1/git/git-upload-pack`, `/v1/git/git-receive-pack`: git's smart HTTP (gitprotocol-http).
 * A push first commits what the agent has changed; it is refused, with a message for people on its stderr, where the
 * branch has diverged, manifest.json is not valid, or a file is in it that must not leave the agent.
 */
