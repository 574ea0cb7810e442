/** A step of CI: one command, its log, its tests, and its cost. */
import { spawn } from 'node:child_process'
import { closeSync, mkdirSync, openSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { CpuMeter } from './cpu.ts'
import { readRuns, type SuiteRun } from './records.ts'

export interface Step {
  name: string
  /** For bash, in the root of the checkout. */
  run: string
  /** A program that creates what its tests need around them, for a second try of a file: `within COMMAND…`. */
  within?: string
  /** Names of tools that must be installed first. */
  needs?: string[]
  env?: NodeJS.ProcessEnv
  /** Control groups of the containers that it starts. */
  containers?: string[]
  /** True if a failing file of it fails the run, without a second try. */
  isFinal?: boolean
  /** How many of its last lines are shown if it passes. */
  show?: number
}

export interface StepResult {
  step: Step
  /** Exit code of the command. */
  code: number
  log: string
  runs: SuiteRun[]
  seconds: number
  cpuSeconds: number | undefined
}

const REPORTER = join(import.meta.dirname, 'reporter.ts')
/** With patterns such as `!(a|b)`, as npm's scripts pass them to Node. */
const SHELL = ['bash', '-O', 'extglob', '-c']
const LIMIT = ['timeout', '--signal=INT', '--kill-after=30', '40m']
/** Node exits with this code if tests failed. Every other code except 0 is a separate failure. */
const TESTS_FAILED = 1
let count = 0

/** Environment under which each suite writes its records into a folder. */
export function recording(dir: string, env: NodeJS.ProcessEnv = process.env): NodeJS.ProcessEnv {
  mkdirSync(dir, { recursive: true })
  const spec = '--test-reporter=spec --test-reporter-destination=stdout'
  const records = `--test-reporter=${REPORTER} --test-reporter-destination=stderr`
  return {
    ...env,
    CI_RECORDS: dir,
    NODE_OPTIONS: `${env.NODE_OPTIONS ?? ''} ${spec} ${records}`.trim(),
    // A suite reports to its reporters even if a test started the runner.
    NODE_TEST_CONTEXT: undefined,
  }
}

/**
 * Runs a step for at most 40 minutes. @param dir the folder for its log and records. @param signal ends it, and rejects.
 */
export async function runStep(step: Step, dir: string, signal?: AbortSignal): Promise<StepResult> {
  const folder = join(dir, `${String(++count).padStart(2, '0')}-${step.name.replaceAll(/[^a-z0-9]/g, '-')}`)
  const env = recording(join(folder, 'records'), { ...process.env, ...step.env })
  const log = join(folder, 'log')
  const meter = new CpuMeter(step.name, step.containers)
  const start = performance.now()
  const code = await runLogged([...meter.prefix, ...LIMIT, ...SHELL, step.run], log, { env, signal })
  const cpuSeconds = meter.stop()
  const seconds = (performance.now() - start) / 1000
  return { step, code, log, runs: readRuns(join(folder, 'records')), seconds, cpuSeconds }
}

/**
 * Runs a command with both outputs in a file. @returns its exit code; 128 if a signal ended it.
 * @param options.signal sends SIGINT to the command, and rejects once it has ended.
 */
export async function runLogged(
  [program = '', ...args]: string[],
  log: string,
  { signal, ...options }: { env: NodeJS.ProcessEnv; cwd?: string; signal?: AbortSignal | undefined },
): Promise<number> {
  signal?.throwIfAborted()
  // No pipe: a server that the command leaves behind may keep its outputs open.
  const file = openSync(log, 'a')
  try {
    const child = spawn(program, args, { ...options, stdio: ['ignore', file, file] })
    const interrupt = () => child.kill('SIGINT')
    signal?.addEventListener('abort', interrupt)
    const code = await new Promise<number>((resolve, reject) =>
      child.once('error', reject).once('exit', (code) => resolve(code ?? 128)),
    )
    signal?.removeEventListener('abort', interrupt)
    signal?.throwIfAborted()
    return code
  } finally {
    closeSync(file)
  }
}

/** Test records of a result by status: a suite that is skipped, or whose hook failed, stands for its tests. */
export function testsOf(runs: SuiteRun[], status: 'passed' | 'failed' | 'skipped') {
  const tests = runs.flatMap((run) => run.tests.map((test) => ({ run, ...test })))
  return tests.filter((test) => test.status === status && (status !== 'passed' || test.type === 'test'))
}

/** True if a step failed for another reason than a failing test. */
export const brokeDown = ({ code, runs }: Pick<StepResult, 'code' | 'runs'>): boolean =>
  code !== 0 && (code !== TESTS_FAILED || testsOf(runs, 'failed').length === 0)

/** Passed and failed of a step; one that has no tests counts as one. */
export function countOf(result: StepResult): { passed: number; failed: number } {
  const failed = testsOf(result.runs, 'failed').length + Number(brokeDown(result))
  const passed = testsOf(result.runs, 'passed').length
  return { passed: passed + failed === 0 ? 1 : passed, failed }
}

/** The part of a step's log to show: its failures with the first ones in full, or its last lines. */
export async function excerptOf(result: StepResult): Promise<string> {
  const lines = (await readFile(result.log, 'utf8')).trimEnd().split('\n')
  const { show = 0 } = result.step
  if (result.code === 0) return show > 0 ? lines.slice(-show).join('\n') : ''
  const marked = lines.filter((line) => /^ *✖|not ok/.test(line)).slice(0, 40)
  const at = lines.indexOf('✖ failing tests:')
  const detail = at < 0 || brokeDown(result) ? lines.slice(-150) : lines.slice(at, at + 200)
  return [...marked, ...detail].join('\n')
}
