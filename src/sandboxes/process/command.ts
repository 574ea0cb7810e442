/** Builds a command line that runs a program the way agents run: as their user, isolated, with its own /tmp. */
import type { RunAs } from '../../lib/process/system-user.ts'
import type { Place } from './place-record.ts'
import { withPrivateTmp } from './private-tmp.ts'
import type { AgentPaths } from './state.ts'
import { withinWall } from './wall.ts'

/** The properties of a place that determine how agents run. */
export type Ways = Pick<Place, 'user' | 'view' | 'privateTmp'>

/**
 * @param readable additional files and folders that the program reads.
 * @returns the command, and the user that starts it.
 */
export function asAgent(
  { user, view, privateTmp }: Ways,
  { home, temporary }: Pick<AgentPaths, 'home' | 'temporary'>,
  readable: string[],
  program: string[],
): { command: string[]; user: RunAs } {
  if (view) {
    const readOnly = [...view.readOnly, ...readable]
    return { command: withinWall({ ...view, home, temporary, readOnly }, program), user }
  }
  if (!privateTmp) return { command: program, user }
  const { stage } = privateTmp
  const needed = [home, temporary, ...privateTmp.needed, ...readable]
  return { command: withPrivateTmp({ stage, home, user, needed }, program), user: {} }
}
