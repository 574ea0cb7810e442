/** A running role, and the signals that stop it. */

/** Two signals within this time are one Ctrl-C: npm forwards it to a process that already gets it from the terminal. */
const SAME_MS = 1000

export interface RunningRole {
  /** The role's URL, if it serves HTTP. */
  url?: string
  /** Ends its work in order, and closes everything that it opened. */
  stop(): Promise<void>
  /** The work that `stop` is currently waiting for, such as `2 operations`. */
  waitsFor?(): string[]
  /** Makes `stop` wait no longer than necessary. */
  hurry?(): void
}

/** `1 agent`, `2 agents`; empty for zero. */
export const counted = (count: number, what: string): string[] =>
  count === 0 ? [] : [`${count} ${what}${count === 1 ? '' : 's'}`]

/**
 * Calls `begin` at the first signal, and `hurry` at each later one.
 * @param options.passedOn whether one Ctrl-C may arrive twice, as it does below npm.
 */
export function onStopSignals(
  { begin, hurry }: { begin: () => void; hurry: () => void },
  { passedOn }: { passedOn: boolean },
): void {
  let first: number | undefined
  const onSignal = () => {
    if (first === undefined) {
      first = performance.now()
      begin()
    } else if (!passedOn || performance.now() - first > SAME_MS) hurry()
  }
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, onSignal)
}
