/** Agents as processes: their user, their location, and what a worker that dies leaves to the next. */
import assert from 'node:assert/strict'
import { execFile, execFileSync } from 'node:child_process'
import { chmod, cp, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, test } from 'node:test'
import { promisify } from 'node:util'
import { tryLock } from '../../../src/lib/process/file-lock.ts'
import { isRoot } from '../../../src/lib/process/system-user.ts'
import { createLogger } from '../../../src/log.ts'
import type { SandboxRuntime } from '../../../src/sandboxes/port.ts'
import { openProcessRuntime as openRuntime, type ProcessOptions } from '../../../src/sandboxes/process.ts'
import { run, until, untilStill } from '../../support/processes.ts'
import { failsWith, newAgent, outputIn, runIn, specOf, VERSIONS } from './subject.ts'

const log = createLogger('test', 'silent')
const agentdDir = join(import.meta.dirname, 'agentd')
const openProcessRuntime = (options: ProcessOptions) => openRuntime({ ...options, acceptsNoWall: true })
const needsRoot = isRoot() ? false : 'needs root'
const made: string[] = []
after(async () => {
  for (const path of made) await rm(path, { recursive: true, force: true })
})

/** How many processes have a path on their command line, not counting the shells that wait for them. */
async function running(path: string): Promise<number> {
  const { stdout } = await promisify(execFile)('ps', ['-A', '-ww', '-o', 'args='], { maxBuffer: 1e7 })
  const lines = stdout.split('\n').filter((line) => line.split(' ').includes(path))
  return lines.filter((line) => !line.startsWith('/bin/sh ')).length
}

/** A folder with a data folder and an engine; only its owner can enter if `mode` is 700. */
async function newFolder(mode: number): Promise<{ dir: string; dataDir: string; enginesDir: string }> {
  const dir = await mkdtemp(join(tmpdir(), 'berth-place-'))
  made.push(dir)
  await chmod(dir, mode)
  const enginesDir = join(dir, 'engines')
  await mkdir(join(enginesDir, VERSIONS[0], 'node_modules/openclaw'), { recursive: true })
  return { dir, dataDir: join(dir, 'data'), enginesDir }
}

test('root moves agents out of a folder of mode 700, with copies that their user can read', {
  skip: needsRoot,
}, async () => {
  const { dir, dataDir, enginesDir } = await newFolder(0o700)
  await cp(agentdDir, join(dir, 'agentd'), { recursive: true })
  const open = () => openProcessRuntime({ dataDir, enginesDir, agentdDir: join(dir, 'agentd'), log })
  const runtime = await open()
  const { location } = JSON.parse(await readFile(join(dataDir, 'agents.json'), 'utf8'))
  made.push(location)
  assert.match(location, /^\/var\/lib\/berth\/agents-/)
  const agentId = newAgent()
  await runtime.create(specOf(agentId))
  const { address } = await runtime.start(agentId)
  const [home, uid] = (await outputIn(address, 'pwd; id -u')).split('\n')
  assert.equal(home, join(location, agentId, 'home'))
  assert.equal((await stat(home)).mode & 0o777, 0o700)
  assert.equal((await stat(home)).uid, Number(uid))
  assert.notEqual((await runIn(address, `ls ${dir}`)).code, 0)
  assert.notEqual((await runIn(address, `cat ${join(location, agentId, 'state.json')}`)).code, 0)
  const config = JSON.parse(await outputIn(address, 'echo "$AGENTD_CONFIG"'))
  assert.equal(await outputIn(address, `ls ${config.engineDir}/node_modules`), 'openclaw')
  made.push(config.engineDir)
  const program = await outputIn(address, `tr '\\0' '\\n' </proc/$PPID/cmdline | tail -n 1`)
  assert.match(program, /^\/var\/lib\/berth\/agentd-\w+\/main\.ts$/)
  made.push(dirname(program))
  const cache = await outputIn(address, 'echo "$NODE_COMPILE_CACHE"')
  made.push(cache)
  assert.match(cache, /^\/var\/lib\/berth\/agentd-cache-v/)
  assert.notDeepEqual(await readdir(cache), [], 'agentd has a compile cache')
  assert.notEqual((await runIn(address, `touch "$NODE_COMPILE_CACHE"/*/*`)).code, 0, 'agents only read it')
  // The choice stays, although the user may enter the folder now.
  await chmod(dir, 0o755)
  const later = await open()
  assert.equal((await later.inspect(agentId))?.state, 'running')
  await later.remove(agentId, { volume: true })
  await Promise.all([runtime.close(), later.close()])
})

/** An engine that loads one module, and is ready at once. */
const READY = `import { createServer } from 'node:http'
import './dist/module.mjs'
const port = process.argv[process.argv.indexOf('--port') + 1]
createServer((_, res) => res.end()).listen(port, '127.0.0.1')
process.once('SIGTERM', () => process.exit())`

/** Like {@link newFolder}, with an engine that has code to compile, and the program that does it. */
async function newEngine(program: string) {
  const folder = await newFolder(0o755)
  const agentd = join(folder.dir, 'agentd')
  await cp(agentdDir, agentd, { recursive: true })
  const compiler = 'compile-engine.ts'
  await cp(join(import.meta.dirname, '../../../agentd', compiler), join(agentd, compiler))
  const engine = join(folder.enginesDir, VERSIONS[0], 'node_modules/openclaw')
  await mkdir(join(engine, 'dist'))
  await writeFile(join(engine, 'dist/module.mjs'), 'export default 1')
  await writeFile(join(engine, 'openclaw.mjs'), program)
  return {
    agentsDir: join(folder.dataDir, 'agents'),
    open: () => openProcessRuntime({ ...folder, agentdDir: agentd, log }),
    /** Whether the driver compiles it. */
    async prepare(runtime: SandboxRuntime): Promise<boolean> {
      const lines: string[] = []
      await runtime.prepareEngine(VERSIONS[0], { onLine: (line) => lines.push(line) })
      return lines.includes(`Compiling openclaw ${VERSIONS[0]}`)
    },
  }
}

test('an engine is compiled once, by a boot without an agent, and agents only read the code', async () => {
  const { agentsDir, open, prepare } = await newEngine(READY)
  const [runtime, later] = [await open(), await open()]
  const compiled = await Promise.all([prepare(runtime), prepare(later)])
  assert.deepEqual(compiled.sort(), [false, true], 'one of two concurrent workers')
  assert.equal(await prepare(runtime), false)
  assert.deepEqual(
    (await readdir(agentsDir)).filter((name) => name.startsWith('.compile')),
    [],
  )
  const agentId = newAgent()
  await runtime.create(specOf(agentId))
  const { address } = await runtime.start(agentId)
  const { engineDir } = JSON.parse(await outputIn(address, 'echo "$AGENTD_CONFIG"'))
  assert.notEqual(await outputIn(address, `cat ${engineDir}/compile-cache/*/* | head -c 1 | wc -c`), '0')
  if (runtime.wall !== 'accepted')
    assert.notEqual((await runIn(address, `touch ${engineDir}/compile-cache/*/*`)).code, 0)
  await runtime.remove(agentId, { volume: true })
  await Promise.all([runtime.close(), later.close()])
})

test('an engine that cannot be compiled is available all the same, and is not tried again', async () => {
  const { open, prepare } = await newEngine('process.exit(1)')
  const runtime = await open()
  assert.deepEqual([await prepare(runtime), await prepare(runtime)], [true, false])
  await runtime.close()
})

test('an agents folder that the user cannot enter is rejected with a remedy', {
  skip: needsRoot,
}, async () => {
  const { dir, dataDir, enginesDir } = await newFolder(0o700)
  const options = { dataDir, enginesDir, agentdDir, log, agentsDir: join(dir, 'agents') }
  await assert.rejects(openProcessRuntime(options), (error: Error) => {
    assert.match(error.message, /"berth-agent", who cannot enter .*chmod o\+x.*BERTH_AGENTS_DIR/s)
    return failsWith('internal')(error)
  })
})

test('links in an agent’s home do not lead its removal outside', async () => {
  const { dir, dataDir, enginesDir } = await newFolder(0o755)
  const runtime = await openProcessRuntime({ dataDir, enginesDir, agentdDir, log })
  const agentId = newAgent()
  const precious = join(dir, 'precious')
  await mkdir(precious)
  await chmod(precious, 0o777)
  execFileSync('touch', [join(precious, 'file')])
  await runtime.create(specOf(agentId))
  const { address } = await runtime.start(agentId)
  await outputIn(
    address,
    `ln -s ${precious} ~/link; mkdir -p ~/deep/er; ln -s ${precious}/file ~/deep/er/f; chmod 0 ~/deep/er`,
  )
  await runtime.remove(agentId, { volume: true })
  assert((await stat(join(precious, 'file'))).isFile())
  assert.deepEqual(await runtime.list(), { sandboxes: [], volumes: [] })
  await runtime.close()
})

test('other files in an operator’s folder are neither listed nor removed', async () => {
  const { dir, dataDir, enginesDir } = await newFolder(0o755)
  const agentsDir = join(dir, 'shared')
  const runtime = await openProcessRuntime({ dataDir, enginesDir, agentdDir, agentsDir, log })
  for (const path of ['other/home', 'other/tmp']) await mkdir(join(agentsDir, path), { recursive: true })
  await writeFile(join(agentsDir, 'other/state.json'), '{}')
  assert.deepEqual(await runtime.list(), { sandboxes: [], volumes: [] })
  await runtime.remove('other', { volume: true })
  assert.deepEqual((await readdir(join(agentsDir, 'other'))).sort(), ['home', 'state.json', 'tmp'])
  await runtime.close()
})

test('a closed driver writes nothing more, even while it waits to clean up after an agent', async (t) => {
  const { dir, dataDir, enginesDir } = await newFolder(0o755)
  const agentsDir = join(dir, 'agents')
  const options = { dataDir, enginesDir, agentdDir, agentsDir, log }
  const [runtime, later] = [await openProcessRuntime(options), await openProcessRuntime(options)]
  const agentId = newAgent()
  await runtime.create(specOf(agentId))
  const { address } = await runtime.start(agentId)
  const release = tryLock(join(agentsDir, '.locks', `${agentId}.mutex`))
  const { mock } = t.mock.method(DatabaseSync.prototype, 'exec')
  await runIn(address, 'kill -9 $PPID').catch(() => {})
  await until('the driver asks for the lock of the agent', () => mock.callCount() > 0)
  await runtime.close()
  release?.()
  await untilStill('attempts to lock', () => mock.callCount())
  // It would have recorded the exit code.
  assert.equal((await later.inspect(agentId))?.exitCode, null)
  await later.remove(agentId, { volume: true })
  await later.close()
})

test('a killed worker leaves its agents to the next worker', async () => {
  const { dataDir, enginesDir } = await newFolder(0o755)
  const [one, two] = [newAgent(), newAgent()]
  const options = { dataDir, enginesDir, agentdDir }
  const worker = run(process.execPath, [
    join(import.meta.dirname, 'worker.program.ts'),
    JSON.stringify({ options: { ...options, acceptsNoWall: true }, agents: [one, two] }),
  ])
  await until('its agents run', () => worker.output().includes('started'))
  await worker.end('SIGKILL')
  const runtime = await openProcessRuntime({ ...options, log })
  const { sandboxes } = await runtime.list()
  assert.deepEqual(
    sandboxes.map(({ agentId, state }) => `${agentId} ${state}`).sort(),
    [`${one} running`, `${two} running`].sort(),
  )
  const { address, startedAt } = await runtime.start(one)
  assert.equal((await runIn(address, 'true')).code, 0)
  assert.equal(startedAt, sandboxes.find(({ agentId }) => agentId === one)?.startedAt)
  await runtime.stop(one)
  assert.equal((await runtime.inspect(one))?.state, 'exited')
  // The exit code is lost because the parent of the process was gone.
  assert.equal((await runtime.inspect(one))?.exitCode, null)
  const other = await runtime.inspect(two)
  await runIn(other?.address ?? null, 'kill -9 $PPID').catch(() => {})
  await until('its end is noticed', async () => (await runtime.inspect(two))?.state === 'exited')
  assert.notEqual((await runtime.start(two)).startedAt, other?.startedAt)
  for (const agentId of [one, two]) await runtime.remove(agentId, { volume: true })
  await runtime.close()
})

test('a worker killed while it starts an agent leaves no process next to the next start', async () => {
  const { dir, dataDir, enginesDir } = await newFolder(0o755)
  // A separate path, which distinguishes its processes from those of other tests.
  const agentdDir = join(dir, 'agentd')
  await cp(join(import.meta.dirname, 'agentd'), agentdDir, { recursive: true })
  const agentId = newAgent()
  const runtime = await openProcessRuntime({ dataDir, enginesDir, agentdDir, log })
  await runtime.create(specOf(agentId))
  await runtime.start(agentId)
  await runtime.stop(agentId)
  // At different moments of a start, which takes some 150 ms.
  for (const ms of [0, 10, 20, 40, 80]) {
    const options = { dataDir, enginesDir, agentdDir, acceptsNoWall: true }
    const worker = run(process.execPath, [
      join(import.meta.dirname, 'worker.program.ts'),
      JSON.stringify({ options, agents: [agentId], killAfterMs: ms }),
    ])
    await new Promise((resolve) => worker.process.once('exit', resolve))
    const { address } = await runtime.start(agentId)
    made.push(await outputIn(address, 'echo "$NODE_COMPILE_CACHE"'))
    assert.equal(await running(join(agentdDir, 'main.ts')), 1)
    await runtime.stop(agentId)
    assert.equal(await running(join(agentdDir, 'main.ts')), 0)
  }
  await runtime.remove(agentId, { volume: true })
  await runtime.close()
})

test('a disk down to its reserve refuses new agents and starts existing ones', async () => {
  const { dataDir, enginesDir } = await newFolder(0o711)
  const open = (reserveBytes?: number) =>
    openProcessRuntime({ dataDir, enginesDir, agentdDir, log, reserveBytes })
  const [before, full] = [await open(), await open(Number.MAX_SAFE_INTEGER)]
  const [agentId, another] = [newAgent(), newAgent()]
  await before.create(specOf(agentId))
  await assert.rejects(full.ensureVolume(another), (error) => {
    assert.match(
      (error as Error).message,
      /^No space left: the disk of agents that run as processes \(BERTH_AGENTS_DIR\)/,
    )
    return failsWith('disk_full')(error)
  })
  await full.ensureVolume(agentId)
  await full.start(agentId)
  await full.remove(agentId, { volume: true })
  assert.deepEqual((await full.list()).volumes, [])
  await Promise.all([before.close(), full.close()])
})
