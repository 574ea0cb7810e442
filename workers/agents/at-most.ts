import type { Handler, Run } from '../../src/operations/runner.ts'
import type { AgentWorkerServices } from './services.ts'

const FIRST_WAIT_MS = 500
const MAX_WAIT_MS = 15_000

/**
 * Lets `most` runs of all the handlers that it is given go on at a time, in this process; others go back into the line.
 * How long a run takes that moves what is in an agent is up to that agent: a few that are slow must not keep others
 * from coming up.
 */
export function atMost(
  most: number,
  { pool }: Pick<AgentWorkerServices, 'pool'>,
): (handler: Handler) => Handler {
  let running = 0
  return (handler) => ({
    ...handler,
    async handle(run) {
      if (running >= most) {
        const cause = `${most} others are at work`
        return run.end(pool, { state: 'queued', delayMs: waitOf(run), code: 'busy', cause })
      }
      running++
      try {
        await handler.handle(run)
      } finally {
        running--
      }
    },
  })
}

/** Spread: those that wait do not come back all at once. */
const waitOf = ({ operation }: Run): number =>
  Math.min(FIRST_WAIT_MS * 2 ** Math.min(operation.attempts - 1, 10), MAX_WAIT_MS) * (0.5 + Math.random())
