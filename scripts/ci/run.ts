/** Runs CI, which `.ci/run` describes. The cache folder records which turns passed and which tests were flaky. */
import { execFileSync, spawn } from 'node:child_process'
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { homedir } from 'node:os'
import { delimiter, join } from 'node:path'
import { CLEAN_RUNS, FLAKY_LIST, type Flake, parseFlakyList } from './flaky.ts'
import { runAll } from './run-all.ts'
import { ALWAYS, BY_HAND, FIRST, IN_TURN, LAST } from './steps.ts'
import { TOOLS } from './tools.ts'
import { chooseSteps, type Passes } from './turns.ts'

/** State that a machine keeps between runs. */
interface Kept {
  passes: Passes
  flakes: Flake[]
  /** How many runs in a row a listed file was clean. */
  clean: Record<string, number>
}

const git = (...args: string[]) => execFileSync('git', args, { encoding: 'utf8' }).trim()
const cache = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'berth')
/** The latest run's output: a landing shows only its end. */
const spoken = join(cache, 'ci.log')
mkdirSync(cache, { recursive: true })
rmSync(spoken, { force: true })
const say = (text: string) => {
  console.log(text)
  appendFileSync(spoken, `${text}\n`)
}

const file = join(cache, 'ci.json')
const kept: Kept = {
  passes: {},
  flakes: [],
  clean: {},
  ...(existsSync(file) && JSON.parse(readFileSync(file, 'utf8'))),
}

function save(): void {
  // By a rename: a run that is killed must not leave a file that the next run cannot read.
  writeFileSync(`${file}.new`, `${JSON.stringify(kept, undefined, 2)}\n`)
  renameSync(`${file}.new`, file)
}

/** Paths that changed since a commit; none if this clone does not have it. */
function changedSince(earlier: string): string[] {
  try {
    return git('diff', '--name-only', earlier, 'HEAD').split('\n')
  } catch {
    return []
  }
}

const commit = git('log', '-1', '--format=%H')
const { steps: due, why } = chooseSteps(IN_TURN, process.env.CI_TURN, kept.passes, { commit, changedSince })
say(`In turn, because ${why}: ${due.map(({ name }) => name).join('; ')}`)

const dir = process.env.CI_DIR
if (!dir) throw new Error('.ci/run starts this')
process.env.PATH = [join(process.cwd(), 'node_modules/.bin'), process.env.PATH].join(delimiter)
// Without it, every process of the tests, and of the Berths that they start, strips the types of its modules again.
process.env.NODE_COMPILE_CACHE = join(cache, 'node')
const listed = parseFlakyList(readFileSync(FLAKY_LIST, 'utf8'))
const date = new Date().toISOString().slice(0, 10)
const [largest = [], ...others] = ALWAYS
const plan = {
  first: FIRST,
  chains: [
    // It keeps all processors busy, and most steps in turn do not.
    largest,
    // Steps that start containers share Docker, so they run one after the other.
    due.filter(({ containers }) => containers),
    ...due.filter(({ containers }) => !containers).map((step) => [step]),
    ...others,
  ],
  slots: 2,
  last: LAST,
  tools: TOOLS,
}
const isDue = new Set(due.map(({ name }) => name))
const former = { ...kept.passes }
/** At once: a run that reaches its time limit has still proven these. */
const keepPass = (name: string, cpuSeconds: number | undefined) => {
  if (!isDue.has(name)) return
  kept.passes[name] = { at: new Date().toISOString(), commit, cpuSeconds }
  save()
}
// Ctrl-C does not reach the steps: `timeout` puts each into a process group of its own.
const stop = new AbortController()
for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => stop.abort(name))
const outcome = await runAll(plan, {
  ...{ dir, say, listed, earlier: kept.flakes, date, commit, signal: stop.signal },
  byHand: due.length === IN_TURN.length ? BY_HAND : undefined,
  passed: ({ step, cpuSeconds }) => keepPass(step.name, cpuSeconds),
}).catch((error) => {
  if (!stop.signal.aborted) throw error
  say(`${stop.signal.reason}: the steps end, and no other starts. Logs: ${dir}`)
  process.exit(1)
})

for (const name of isDue) {
  if (!outcome.broken.includes(name)) {
    keepPass(name, outcome.cpuSeconds[name])
    continue
  }
  // A file that test/flaky.md lists may have failed later.
  const { [name]: _, ...others } = kept.passes
  const pass = former[name]
  kept.passes = { ...others, ...(pass && { [name]: pass }) }
  say(pass ? `${name} last passed at ${pass.commit.slice(0, 8)}, ${pass.at}` : `${name} has not passed here`)
}
for (const [listedFile, isClean] of Object.entries(outcome.clean)) {
  kept.clean[listedFile] = isClean ? (kept.clean[listedFile] ?? 0) + 1 : 0
  if (kept.clean[listedFile] >= CLEAN_RUNS)
    say(`CLEAN ${listedFile}: ${CLEAN_RUNS} runs; remove it from test/flaky.md`)
}
kept.flakes = [...kept.flakes, ...outcome.flakes].slice(-100)
save()

// It takes half a minute, and nothing waits for it.
if (outcome.failed === 0) spawn('rm', ['-rf', dir], { detached: true, stdio: 'ignore' }).unref()
else say(`Logs: ${dir}`)
say(`\n${outcome.passed} passed, ${outcome.failed} failed`)
process.exitCode = outcome.failed === 0 ? 0 : 1
