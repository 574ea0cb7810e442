/** Chooses the steps that a run of CI takes in addition to those that always run. */
import type { Step } from './step.ts'

export interface StepInTurn extends Step {
  /** Files, or beginnings of their paths, whose change puts the step before the others. */
  paths?: string[]
}

/** When a step last passed on this machine (ISO time), at which commit, and its CPU seconds. */
export type Passes = Record<string, { at: string; commit: string; cpuSeconds?: number | undefined }>

export interface Choice<S> {
  steps: S[]
  why: string
}

/** CPU seconds of all chosen steps together; a larger step runs as the only one. */
const BUDGET = 500

/**
 * The steps whose code has changed since they last passed come first, then those that have not passed for longest. Steps
 * that have never passed here follow each other in an order that depends on the commit, so that new machines differ.
 * @param wanted CI_TURN: `all`, or a regular expression of names. @param head.commit hash of HEAD.
 * @param head.changedSince paths that changed since a commit.
 * @throws Error if `wanted` matches no step.
 */
export function chooseSteps<S extends StepInTurn>(
  steps: readonly S[],
  wanted: string | undefined,
  passes: Passes,
  head: { commit: string; changedSince: (commit: string) => string[] },
): Choice<S> {
  if (wanted === 'all') return { steps: [...steps], why: 'CI_TURN=all' }
  if (wanted) {
    const chosen = steps.filter(({ name }) => new RegExp(wanted).test(name))
    if (chosen.length === 0) throw new Error(`CI_TURN is all or a part of a step's name, not ${wanted}`)
    return { steps: chosen, why: `CI_TURN=${wanted}` }
  }
  const lastPass = ({ name }: S) => passes[name]?.at ?? ''
  const hasChanged = ({ name, paths = [] }: S) => {
    const { commit } = passes[name] ?? {}
    const changed = commit === undefined || paths.length === 0 ? [] : head.changedSince(commit)
    return changed.some((file) => paths.some((path) => file.startsWith(path)))
  }
  const first = Number.parseInt(head.commit.slice(0, 8), 16) % steps.length
  const byAge = [...steps.slice(first), ...steps.slice(0, first)].sort((a, b) =>
    lastPass(a) < lastPass(b) ? -1 : Number(lastPass(a) > lastPass(b)),
  )
  const { changed = [], others = [] } = Object.groupBy(byAge, (step) =>
    hasChanged(step) ? 'changed' : 'others',
  )
  let left = BUDGET
  const chosen = [...changed, ...others].filter((step, i) => {
    const cost = passes[step.name]?.cpuSeconds ?? BUDGET
    if (i > 0 && cost > left) return false
    left -= cost
    return true
  })
  return {
    steps: chosen,
    why: changed.length > 0 ? 'code changed since they passed' : 'they have not passed for longest',
  }
}
