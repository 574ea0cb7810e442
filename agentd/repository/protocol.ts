/** The part of the protocol between agentd and Berth about the agent's repository: only types, as in ../protocol.ts. */

/**
 * The agent's root is a git repository, which only agentd and the agent itself touch. Changes through this protocol
 * (`commit`, `reset`, `adopt`, a push) run one after another. Commits are 40 hex digits.
 *
 * `GET /v1/repository`: its current state.
 */
export interface RepositoryStatus {
  /** Null before the first commit. */
  head: string | null
  /** True if there is something to commit. */
  dirty: boolean
  /** The commit that was pushed and not applied yet, see `DELETE /v1/repository/pushed`. Survives agentd. */
  pushed: string | null
}

/**
 * `POST /v1/repository/commit` (fenced): updates `skills` and `secrets` of manifest.json if they are given, then
 * commits all changes. Files that must not leave the agent stay out: those that `.gitignore` or agentd's own list
 * excludes, and those that contain the value of a secret or what looks like a key. If nothing has changed, it returns
 * the existing commit. The tree has only files and symlinks with names in UTF-8: repositories within the repository are
 * kept as files. A secret that the manifest declares stays in it even if the agent does not have it.
 */
export interface CommitRequest {
  message: string
  manifest?: { skills: { name: string; cid: string }[]; secrets: { name: string }[] }
  /** Returns at once, without {@link Committed}. Every later call of this part waits for the commit, and so does git. */
  later?: boolean
}
export interface Committed {
  commit: string
  /** Id of the commit's tree, 40 hex digits. */
  tree: string
  /** False if nothing had changed. */
  isNew: boolean
  /** The commit in git's stored form, without its header, in base64. */
  object: string
  /** At most 20 paths that were left out though no rule ignores them, or that stay as in the last commit. */
  leftOut: string[]
  /** The reasons, for people, in the same order. */
  reasons: string[]
  /** The number of other paths that were left out. */
  more: number
  ignored: IgnoredFiles[]
  extras: Extras
}

/**
 * The parts of a workspace that git's trees lack. `PUT /v1/repository/extras` (fenced) restores them as far as
 * possible, and returns {@link ExtrasResult}.
 */
export interface Extras {
  /** Folders without any entry. */
  folders: string[]
  /** Permissions that git does not keep. */
  modes: { path: string; mode: number }[]
  /** Branches and tags. A tag's commit may be a tag object. */
  refs: { ref: string; commit: string }[]
  /** How many of these the lists leave out. */
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
  /** One of them. A folder's path ends with `/`, and stands for its contents. */
  path: string
  count: number
}

/**
 * A line of `GET /v1/repository/changes?from=<commit>&to=<commit>` (NDJSON): a file of `to` that `from` lacks or has in
 * another version, or a path that is gone. Without `from`: every file of `to`. 404 `not_found` if a commit does not
 * exist. Sorted by path in git's order. Leaves out submodules, and names that are not UTF-8.
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
 * `POST /v1/repository/blobs`: `{blobs: string[]}`, at most 1000. Streams for each one, in that order, `<id>
 * <size>\n<bytes>\n`. 404 `not_found` if one of them does not exist.
 */
export interface BlobsRequest {
  blobs: string[]
}

/**
 * `GET /v1/repository/diff?from=&to=&max=`: the unified diff as text, cut after `max` bytes at a line's end; without
 * `from` against nothing. `GET /v1/repository/file?commit=&path=&max=`: a file's bytes in a commit. `GET
 * /v1/repository/files?commit=&max=`: text, one line `<size> <path>` per file, cut after `max` bytes. A cut response
 * has the header `truncated: true`.
 */

/**
 * `POST /v1/repository/reset` (fenced): resets the working tree to a commit, and points `HEAD`'s branch to it; ignored
 * files stay. Changes are committed before, and the previous state stays reachable. Returns `{commit}`; 404 `not_found`
 * if the commit does not exist.
 */
export interface ResetRequest {
  commit: string
}

/**
 * `PUT /v1/repository/import?bytes=<size>` (fenced): a git-fast-import stream that makes one commit on
 * `refs/berth/import`, with the files of each folder one after another; returns {@link Imported}. The working tree
 * stays unchanged, except in a repository without a commit: there, a {@link ResetRequest} follows, and the files may be
 * written already. The size of its files decides how they are stored.
 *
 * `POST /v1/repository/adopt` (fenced): creates a commit from `object` (as in {@link Committed}) whose tree exists, with
 * or without its parents (the history then begins there: git's `shallow`), and returns `{commit}`.
 *
 * `DELETE /v1/repository/pushed?commit=<commit>` (fenced): reports that the push was applied.
 */
export interface Imported {
  commit: string
  tree: string
}
export interface AdoptRequest {
  object: string
}

/**
 * `/v1/git/info/refs?service=…`, `/v1/git/git-upload-pack`, `/v1/git/git-receive-pack`: git's smart HTTP
 * (gitprotocol-http). A push first commits the agent's changes. It is refused, with a readable message on its stderr,
 * if the branch has diverged, manifest.json is invalid, or it contains a file that must not leave the agent.
 */
