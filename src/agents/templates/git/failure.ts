/** Why a repository could not be read, for people. */

import type { ProxyError } from '../../../agent-proxy/dial.ts'
import { ApiError, badRequest, contractError } from '../../../errors.ts'
import { GitFailure } from './program.ts'

export const NOTHING_THERE = 'gitUrl: there is no git repository, or it is empty'

/** Messages of git (in English, `LC_ALL=C`), and their meaning here. */
const MEANINGS: [RegExp, string][] = [
  [/find remote ref HEAD\b/i, NOTHING_THERE],
  [
    /find remote ref|unadvertised object|not our ref|invalid refspec|unable to parse object/i,
    'branch: the repository has no such branch, tag or commit',
  ],
  [/not a valid object name|not a tree object/i, 'path: the repository has no such folder'],
  [
    /could not read Username|Authentication failed|returned error: 40[1-4]|repository .* not found/i,
    'gitUrl: there is no public repository',
  ],
  [/is this a git repository|does not support shallow|bad line length|protocol error/i, NOTHING_THERE],
  [
    /transport '\w+' not allowed|Protocol "?\w+"? (not supported|disabled|is disabled)|Unsupported protocol/i,
    'gitUrl: leads to an address that is not https',
  ],
  [
    // A helper of git that was ended, by a limit of ours, says only that it was.
    /index-pack|died of signal|File too large|Out of memory|malloc failed|mmap failed|memory exhausted/i,
    'gitUrl: the repository is too large, or damaged',
  ],
]

/**
 * The answer to a client about a failure.
 * @param refusal the first of the proxy's: it knows better than git, to which any refusal is the server's.
 */
export function toAnswer(error: unknown, refusal: ProxyError | undefined): unknown {
  if (!(error instanceof GitFailure)) return error
  const { reason, stderr } = error
  if (reason === 'missing')
    return new ApiError(503, 'no_git', 'Repositories cannot be read: git is not installed', { cause: error })
  if (refusal?.status === 403) return badRequest(`gitUrl: ${refusal.message}`)
  if (refusal) return new ApiError(refusal.status, 'git_host', `gitUrl: ${refusal.message}`, { cause: error })
  if (reason === 'aborted')
    return new ApiError(504, 'timeout', 'gitUrl: reading the repository took too long', { cause: error })
  if (reason === 'output') return badRequest('gitUrl: the repository has too many files or branches')
  const known = MEANINGS.find(([pattern]) => pattern.test(stderr))
  if (known) return badRequest(known[1])
  const said = stderr.split('\n').findLast((line) => /^(fatal|error): /.test(line))
  return contractError(502, 'git_host', 'gitUrl: the repository could not be read', said, { cause: error })
}
