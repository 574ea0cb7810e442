/**
 * Checks the engine's needs as an agent. If a need is not met, the engine itself usually reports only that it was not
 * ready in time.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { run } from '../../lib/process/system-user.ts'
import { asAgent, type Ways } from './command.ts'
import type { Place } from './place-record.ts'
import { makeOwnFolder } from './state.ts'
import { SYSTEM_PATH } from './wall.ts'

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
  const { agentsDir, node, user } = place
  const folder = await mkdtemp(join(agentsDir, '.probe-'))
  try {
    const [home, temporary] = [join(folder, 'home'), join(folder, 'tmp')]
    // The agents' user must be able to pass through.
    await run('chmod', ['711', folder])
    for (const path of [home, temporary]) await makeOwnFolder(path, user)
    const program = [node, '--no-warnings', '-e', `(${tryNeeds})(${JSON.stringify({ home, temporary })})`]
    const { command, user: as } = asAgent(place, { home, temporary }, [], program)
    const { ok, output } = await run('env', [`PATH=${SYSTEM_PATH}`, ...command], as, PROBE_MS)
    return ok && output === ''
      ? null
      : `The engine cannot run here: ${output.slice(-500) || 'it cannot be tried'}`
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** Prints unmet needs. It runs as an agent from its source text, so it must use nothing outside of it. */
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
