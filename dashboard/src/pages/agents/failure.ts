/** Detects failed starts of agents, and explains each in a sentence. */
import { texts } from '../../texts.ts'

interface Status {
  status: string
  statusReason: string | null
}

/** An agent that does not run has a reason only if its start failed, or Berth gave up restarting it. */
export const hasFailed = ({ status, statusReason }: Status): boolean =>
  status === 'not_running' && Boolean(statusReason)

/** The displayed state of an agent. */
export const shownState = (agent: Status): string => (hasFailed(agent) ? 'failed' : agent.status)

const { causes, cause } = texts.failure
/** Patterns in reasons, with the cause that each indicates. The first match counts. */
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
