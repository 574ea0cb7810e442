/**
 * Tries as an agent what agents must be able to do, and what they must not. If a need is not met, the engine itself
 * usually reports only that it was not ready in time.
 */
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { processIdentity } from '../../lib/process/process-identity.ts'
import { run } from '../../lib/process/system-user.ts'
import { asAgent, type Ways } from './command.ts'
import type { Place } from './place-record.ts'
import { makeOwnFolder } from './state.ts'
import { type CommonView, SYSTEM_PATH } from './wall.ts'

/** The probe takes 0.3 s; on a very busy machine it may take a hundred times that. */
const PROBE_MS = 60_000
/** Time until an unmet need is checked again. */
const AGAIN_MS = 10_000

type ProbedPlace = Ways & Pick<Place, 'agentsDir' | 'node'>

/** Whether the engine's needs are met, as of the last check. */
export class EngineNeeds {
  readonly #place: ProbedPlace
  #unmet: string | null
  #at = performance.now()

  /** @param unmet the current result of {@link findUnmetNeed}. */
  constructor(place: ProbedPlace, unmet: string | null) {
    this.#place = place
    this.#unmet = unmet
  }

  /** The last result; checks again after a while if a need was not met. */
  async last(): Promise<string | null> {
    return this.#unmet === null || performance.now() - this.#at < AGAIN_MS ? this.#unmet : this.look()
  }

  /** Checks now, unless all needs were met and agents have their own /tmp: they share nothing else with the machine. */
  async look(): Promise<string | null> {
    const { view, privateTmp } = this.#place
    if (this.#unmet === null && (view || privateTmp)) return null
    this.#unmet = await findUnmetNeed(this.#place)
    this.#at = performance.now()
    return this.#unmet
  }
}

/** @returns what is missing and what to do about it, in a sentence for the operator; null if all needs are met. */
export async function findUnmetNeed(place: ProbedPlace): Promise<string | null> {
  const said = await tryAsAgent(place, tryNeeds, (folders) => folders)
  return said === null ? null : `The engine cannot run here: ${said || 'it cannot be tried'}`
}

/**
 * Lets an agent try to reach Berth's keys and processes.
 * @param options.secret files that it must not be able to read.
 * @returns why the wall fails here; null if it holds.
 */
export async function whyNoWall(
  place: ProbedPlace & { view: CommonView },
  { dataDir, secret }: { dataDir: string; secret: readonly string[] },
): Promise<string | null> {
  if (process.platform !== 'linux') return 'this system has no namespaces'
  const own = (await readdir(dataDir, { withFileTypes: true })).filter((entry) => entry.isFile())
  const birth = Number((await processIdentity(process.pid))?.birth.split(':')[1])
  const said = await tryAsAgent(place, tryWall, ({ home, temporary }) => ({
    secret: [...own.map(({ name }) => join(dataDir, name)), ...secret],
    kept: [place.node, ...place.view.readOnly],
    free: [home, temporary],
    birth,
  }))
  return said === '' ? 'the check of it failed' : said
}

/**
 * Runs `program` as an agent, from its source text, so that it must use nothing outside of it.
 * @param inputOf its input, from the folders that it may write to.
 * @returns what it printed, or why it could not run; null if it printed nothing.
 */
async function tryAsAgent<T>(
  place: ProbedPlace,
  program: (input: T) => void,
  inputOf: (folders: { home: string; temporary: string }) => T,
): Promise<string | null> {
  const folder = await mkdtemp(join(place.agentsDir, '.probe-'))
  const folders = { home: join(folder, 'home'), temporary: join(folder, 'tmp') }
  try {
    // The agents' user must be able to pass through.
    await run('chmod', ['711', folder])
    for (const path of Object.values(folders)) await makeOwnFolder(path, place.user)
    const source = `(${program})(${JSON.stringify(inputOf(folders))})`
    const { command, user } = asAgent(place, folders, [], [place.node, '--no-warnings', '-e', source])
    const { ok, output } = await run('env', [`PATH=${SYSTEM_PATH}`, ...command], user, PROBE_MS)
    return ok && output === '' ? null : output.slice(-500)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** Prints unmet needs. */
function tryNeeds({ home, temporary }: { home: string; temporary: string }): void {
  const { rmSync, writeFileSync } = process.getBuiltinModule('node:fs')
  const { createServer } = process.getBuiltinModule('node:net')
  const say = (text: string) => process.stdout.write(`${text}. `)
  const places = [
    ['/tmp', '/tmp', 'run `chmod 1777 /tmp`, or mount it writable'],
    [temporary, 'their temporary folders', 'check BERTH_AGENTS_DIR'],
    [home, 'their homes', 'check BERTH_AGENTS_DIR'],
  ] as const
  for (const [folder, name, advice] of places) {
    const file = `${folder}/.berth-probe-${process.pid}-${Date.now()}`
    try {
      writeFileSync(file, '', { flag: 'wx' })
      rmSync(file)
    } catch (error) {
      say(`Agents cannot write to ${name} (${(error as NodeJS.ErrnoException).code}): ${advice}`)
    }
  }
  try {
    const { DatabaseSync } = process.getBuiltinModule('node:sqlite')
    const database = new DatabaseSync(`${home}/probe.sqlite`)
    database.exec('PRAGMA journal_mode = WAL; CREATE TABLE probe (a); INSERT INTO probe VALUES (1)')
    database.close()
  } catch (error) {
    say(
      `SQLite does not work in their homes (${(error as Error).message}): put BERTH_AGENTS_DIR on a local disk`,
    )
  }
  const server = createServer()
  server.once('error', (error: NodeJS.ErrnoException) =>
    say(`Nothing can listen on 127.0.0.1 (${error.code}): bring the loopback interface up`),
  )
  server.listen(0, '127.0.0.1', () => server.close())
}

/** Prints what an agent can do but must not, and what it must do but cannot. */
function tryWall({
  secret,
  kept,
  free,
  birth,
}: {
  /** Paths that an agent must not read, must not write, and must be able to write. */
  secret: string[]
  kept: string[]
  free: string[]
  /** When Berth's own process started, in ticks: everything that the agent sees started later. */
  birth: number
}): void {
  const { accessSync, constants, readdirSync, readFileSync } = process.getBuiltinModule('node:fs')
  const may = (path: string, mode: number) => {
    try {
      accessSync(path, mode)
      return true
    } catch {
      return false
    }
  }
  const began = (pid: string) => {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
      return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19])
    } catch {
      return Number.POSITIVE_INFINITY
    }
  }
  const said = [
    ...secret.filter((path) => may(path, constants.R_OK)).map((path) => `agents can read ${path}`),
    ...kept.filter((path) => may(path, constants.W_OK)).map((path) => `agents can write ${path}`),
    ...free.filter((path) => !may(path, constants.W_OK)).map((path) => `agents cannot write ${path}`),
    ...readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name) && began(name) <= birth)
      .map((pid) => `agents can see process ${pid}`),
  ]
  if (said.length > 0) process.stdout.write(said.join(', '))
}
