/** An agent whose start has failed: that it has, and why, in a sentence. */
import { texts } from '../../texts.ts'

interface Status {
  status: string
  statusReason: string | null
}

/** Berth says why an agent does not run if it did not start, or was given up. */
export const hasFailed = ({ status, statusReason }: Status): boolean =>
  status === 'not_running' && Boolean(statusReason)

/** The state of an agent as it is shown. */
export const shownState = (agent: Status): string => (hasFailed(agent) ? 'failed' : agent.status)

const { causes, cause } = texts.failure
/** Words of a reason, by what they stand for; the first that are found count. */
const WORDS: [RegExp, keyof typeof causes][] = [
  [/out of memory/i, 'memory'],
  [/\bSECRETS_KEY\b/, 'secrets'],
  [/disk|no space|ENOSPC/i, 'disk'],
  [/could read Berth's keys/, 'walls'],
  [/is not installed|there is no image|needs Node|have this version/, 'version'],
  [/keeps ending/, 'repeats'],
  [/schema \d/, 'newer'],
  [/config|unrecognized key/i, 'config'],
  [/not ready in time/, 'late'],
  [/^internal error$/, 'internal'],
  [/cannot be reached|did not answer/, 'away'],
  [/exit code|ended/, 'ended'],
]

/** One plain sentence for a `statusReason`. */
export const sentenceOf = (reason: string): string => {
  const found = WORDS.find(([words]) => words.test(reason))
  return found ? causes[found[1]] : cause
}
