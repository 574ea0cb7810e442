/** Runs steps in parallel, gives failing files a second try, and sums up. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Flake, type FlakyRow, flakyLine, repeatedFlakes } from './flaky.ts'
import { tryAgain } from './second-try.ts'
import { countOf, excerptOf, runStep, type Step, type StepResult, testsOf } from './step.ts'
import { type Prepared, prepare, type Tool } from './tools.ts'

export interface Plan {
  /** Steps of a chain run in order. These chains run at once, before the others. */
  first: Step[][]
  /** `slots` of these chains run at once, in this order as far as their tools are ready. */
  chains: Step[][]
  slots: number
  /** Run when everything else has ended, including second tries. */
  last: Step[]
  tools: Record<string, Tool>
}

export interface Settings {
  /** An empty folder for logs and records. */
  dir: string
  say: (text: string) => void
  listed: FlakyRow[]
  /** Flakes of earlier runs. */
  earlier: Flake[]
  /** Today, as 2026-11-28. */
  date: string
  commit: string
  /** In a run of all steps: test files that people run by hand. A test of any other file must run in some step. */
  byHand?: string[] | undefined
  /** Ends the steps that run, and rejects. */
  signal?: AbortSignal
  /** Called for each step that passes at its first try. */
  passed?: (result: StepResult) => void
}

export interface Outcome {
  passed: number
  failed: number
  /** Names of the steps that failed for good. */
  broken: string[]
  flakes: Flake[]
  clean: Record<string, boolean>
  /** CPU seconds of each step, by its name. */
  cpuSeconds: Record<string, number | undefined>
}

/** How a shell reports a missing program. */
const NOT_INSTALLED = 127

const count = (results: StepResult[], key: 'passed' | 'failed') =>
  results.reduce((sum, result) => sum + countOf(result)[key], 0)

export async function runAll(plan: Plan, settings: Settings): Promise<Outcome> {
  const { dir, say, signal, byHand } = settings
  const results: StepResult[] = []
  const isThere = new Set<string>()
  const done = (name: string, seconds: number) => {
    isThere.add(name)
    if (seconds > 1) say(`   ${name} is installed after ${Math.round(seconds)} s`)
  }
  const tools = prepare([...plan.first, ...plan.chains].flat(), plan.tools, { dir, done, signal })
  const run = async (step: Step) => {
    const result = await runWithTools(step, tools, settings)
    results.push(result)
    if (result.code === 0) settings.passed?.(result)
    say(await resultText(result))
  }
  const runChain = async (steps: Step[]) => {
    for (const step of steps) await run(step)
  }
  await Promise.all(plan.first.map(runChain))
  const waiting = [...plan.chains]
  const runSlot = async () => {
    while (waiting.length > 0) {
      const ready = waiting.findIndex(([first]) => (first?.needs ?? []).every((name) => isThere.has(name)))
      await runChain(waiting.splice(Math.max(ready, 0), 1)[0] ?? [])
    }
  }
  await Promise.all(Array.from({ length: plan.slots }, runSlot))

  const files = settings.listed.map(({ file }) => file)
  const { flakes, failures, broken, clean } = await tryAgain(results, { ...settings, listed: files })
  const failedAtFirst = count(results, 'failed')
  await runChain(plan.last)
  for (const flake of repeatedFlakes(flakes, settings.earlier, settings.listed))
    failures.push(`${flake.file} is flaky again: fix it, or list it in test/flaky.md`)

  const skipped = skippedTests(results)
  if (byHand)
    for (const { file, name, reason } of skipped)
      if (!byHand.includes(file)) failures.push(`${file} > ${name} ran in no step: ${reason}`)

  say(`\n${summary(results)}\n${skippedText(skipped)}`)
  for (const flake of flakes) say(flakyLine(flake))
  for (const failure of failures) say(`FAILED ${failure}`)
  // Without a permanent failure, every failure was flaky.
  const forgiven = failures.length > 0 ? 0 : failedAtFirst
  return {
    passed: count(results, 'passed') + forgiven,
    failed: Math.max(count(results, 'failed') - forgiven, failures.length > 0 ? 1 : 0),
    broken,
    flakes,
    clean,
    cpuSeconds: Object.fromEntries(results.map(({ step, cpuSeconds }) => [step.name, cpuSeconds])),
  }
}

async function runWithTools(
  step: Step,
  tools: Prepared,
  { dir, signal }: Pick<Settings, 'dir' | 'signal'>,
): Promise<StepResult> {
  const variables = await Promise.all((step.needs ?? []).map((name) => tools.get(name))).catch(String)
  if (typeof variables === 'string') {
    const log = join(dir, 'missing-tools.log')
    writeFileSync(log, variables)
    return { step, code: NOT_INSTALLED, log, runs: [], seconds: 0, cpuSeconds: 0 }
  }
  // Agents are processes unless a step asks for a base image, even if Docker answers.
  const env = Object.assign({ BERTH_BASE_IMAGE: 'none' }, ...variables, step.env)
  return runStep({ ...step, env }, dir, signal)
}

const seconds = (value: number | undefined) => (value === undefined ? '?' : String(Math.round(value)))

async function resultText(result: StepResult): Promise<string> {
  const { passed, failed } = countOf(result)
  const cost = `${seconds(result.seconds)} s, ${seconds(result.cpuSeconds)} CPU-s`
  const last = `-- ${result.step.name}: ${passed} passed, ${failed} failed, ${cost}`
  return [`\n== ${result.step.name}`, await excerptOf(result), last].filter(Boolean).join('\n')
}

/** A table of what each step counted and cost. */
function summary(results: StepResult[]): string {
  const rows = results.map((result) => {
    const { passed, failed } = countOf(result)
    return [
      String(passed),
      String(failed),
      seconds(result.seconds),
      seconds(result.cpuSeconds),
      result.step.name,
    ]
  })
  const total = results.reduce((sum, { cpuSeconds = 0 }) => sum + cpuSeconds, 0)
  return [['passed', 'failed', 'wall s', 'CPU-s', 'step'], ...rows, ['', '', '', seconds(total), 'in all']]
    .map(([name, ...cells]) =>
      [name, ...cells].map((cell, at) => (at < 4 ? cell?.padStart(7) : cell)).join(' '),
    )
    .join('\n')
}

interface Skipped {
  file: string
  name: string
  reason: string
}

/** Tests that no step ran. The step that runs one may do so from another file. */
function skippedTests(results: StepResult[]): Skipped[] {
  const runs = results.flatMap((result) => result.runs)
  const ran = testsOf(runs, 'passed').map(({ names }) => names.join(' > '))
  const skipped = testsOf(runs, 'skipped')
    .map(({ file, names, reason = '' }) => ({ file, name: names.join(' > '), reason }))
    .filter(({ name }) => !ran.some((one) => one === name || one.startsWith(`${name} > `)))
  // Several steps may skip the same test.
  return [...new Map(skipped.map((test) => [`${test.file} > ${test.name}`, test])).values()]
}

/** By what was missing. */
function skippedText(skipped: Skipped[]): string {
  if (skipped.length === 0) return 'No test was skipped.'
  const reasons = Object.entries(Object.groupBy(skipped, ({ reason }) => reason))
  const lines = reasons.flatMap(([reason, tests = []]) => [
    `  ${reason}:`,
    ...tests.map(({ file, name }) => `    ${file} > ${name}`),
  ])
  return ['Skipped, by what was missing:', ...lines].join('\n')
}
