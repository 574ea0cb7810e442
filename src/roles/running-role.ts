/** A role that runs, and the signals that stop it. */

/** Two signals within this time are one Ctrl-C: npm passes it on to a process that has it from the terminal already. */
const SAME_MS = 1000

export interface RunningRole {
  /** URL at which the role answers HTTP, if it does. */
  url?: string
  /** Ends what it does, in order, and closes everything it opened. */
  stop(): Promise<void>
  /** Things that `stop` waits for just now, such as `2 operations`. */
  waitsFor?(): string[]
  /** Lets `stop` wait no longer than it has to. */
  hurry?(): void
}

/** `1 agent`, `2 agents`; nothing for none. */
export const counted = (count: number, what: string): string[] =>
  count === 0 ? [] : [`${count} ${what}${count === 1 ? '' : 's'}`]

/**
 * Calls `begin` at the first signal, and `hurry` at each later one.
 * @param options.passedOn whether one Ctrl-C may come twice, as it does below npm.
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
