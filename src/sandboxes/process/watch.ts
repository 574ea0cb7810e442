/** Polls process sandboxes for events. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { SandboxEvent } from '../port.ts'

/** The last run of each sandbox, by agent: its id (null before the first), and whether it still runs. */
export type Runs = Map<string, { run: string | null; running: boolean }>

const WATCH_MS = 300

/** Yields the changes between polls until `signal` fires. */
export async function* watchRuns(
  look: () => Promise<Runs>,
  signal: AbortSignal,
): AsyncGenerator<SandboxEvent> {
  let known = await look()
  while (!signal.aborted) {
    await sleep(WATCH_MS, undefined, { signal }).catch(() => {})
    if (signal.aborted) return
    const now = await look()
    for (const agentId of new Set([...known.keys(), ...now.keys()])) {
      for (const type of changes(known.get(agentId), now.get(agentId))) yield { agentId, type }
    }
    known = now
  }
}

type Look = { run: string | null; running: boolean }

function changes(before: Look | undefined, after: Look | undefined): SandboxEvent['type'][] {
  const types: SandboxEvent['type'][] = []
  const anotherRun = after?.run != null && after.run !== before?.run
  if (before?.running && (anotherRun || !after?.running)) types.push('exited')
  if (anotherRun) types.push('started')
  // The run may have started and ended since the last poll.
  if (anotherRun && !after.running) types.push('exited')
  if (before && !after) types.push('removed')
  return types
}
