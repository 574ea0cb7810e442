/** Chooses the suites that a run of CI takes in addition to the embedded ones. The turn that has not passed for longest comes first. */

/** In the order of CI_TURN=1 to 6. */
export const TURNS = ['real', 'stack', 'chart', 'torture', 'cluster', 'engine'] as const
export type Turn = (typeof TURNS)[number]

/** A change to these files, or to anything below these folders, makes their turn run at once. */
const PATHS: Record<Turn, string[]> = {
  real: ['src/sandboxes/docker', 'src/storage/kubo', 'src/storage/cluster'],
  stack: ['docker-compose.yml', 'Dockerfile', 'deploy/caddy', 'src/backup'],
  chart: ['deploy/chart'],
  torture: ['test/torture'],
  cluster: ['src/sandboxes/kubernetes', 'deploy/kubernetes', 'scripts/ci/kubernetes'],
  engine: ['src/openclaw', 'agentd'],
}

/** When a turn last passed on this machine, as ISO time, and at which commit. */
export type Passes = Partial<Record<Turn, { at: string; commit: string }>>

export interface Choice {
  turns: Turn[]
  why: string
}

/**
 * @param wanted CI_TURN: `all`, or a number from 1 to {@link TURNS}' length.
 * @param commit hash of HEAD, which decides on a machine where no turn has passed yet.
 * @param since a day before HEAD, as ISO time.
 * @param changed paths of the commits since then. @param versionChanged whether they changed the version of Berth.
 * @throws Error if `wanted` is neither.
 */
export function chooseTurns(
  wanted: string | undefined,
  passes: Passes,
  {
    commit,
    since,
    changed,
    versionChanged,
  }: { commit: string; since: string; changed: string[]; versionChanged: boolean },
): Choice {
  if (wanted === 'all') return { turns: [...TURNS], why: 'CI_TURN=all' }
  if (wanted) {
    const turn = TURNS[Number(wanted) - 1]
    if (!turn) throw new Error(`CI_TURN is all or a number from 1 to ${TURNS.length}, not ${wanted}`)
    return { turns: [turn], why: `CI_TURN=${wanted}` }
  }
  const last = (turn: Turn) => passes[turn]?.at ?? ''
  const unproven = TURNS.filter((turn) => last(turn) < since)
  if (versionChanged && unproven.length > 0)
    return { turns: unproven, why: 'the version changed, and they have not passed within a day' }
  const touched = TURNS.filter((turn) =>
    PATHS[turn].some((path) => changed.some((file) => file.startsWith(path))),
  )
  const candidates = touched.length > 0 ? touched : [...TURNS]
  const why = touched.length > 0 ? 'its code changed within a day' : 'it has not passed for longest'
  if (Object.keys(passes).length === 0 && touched.length === 0) {
    const turn = TURNS[Number.parseInt(commit.slice(0, 8), 16) % TURNS.length] as Turn
    return { turns: [turn], why: 'no turn has passed here yet: by the hash of HEAD' }
  }
  return { turns: [candidates.reduce((one, other) => (last(other) < last(one) ? other : one))], why }
}
