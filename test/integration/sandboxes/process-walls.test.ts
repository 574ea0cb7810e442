/** The isolation of agents as processes from the keys and processes of Berth, as root and as an ordinary user. */
import assert from 'node:assert/strict'
import { chmod, chown, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { canEnter, isRoot, type RunAs, run as runAs } from '../../../src/lib/process/system-user.ts'
import { createLogger } from '../../../src/log.ts'
import { openProcessRuntime } from '../../../src/sandboxes/process.ts'
import { NOT_WALLED, WALLS } from '../../../src/sandboxes/walls.ts'
import { Client } from '../../support/client.ts'
import { startDatabase, type TestDatabase } from '../../support/database.ts'
import { DocumentCheck } from '../../support/openapi.ts'
import { freeMetricsPorts, freePort, type Running, run, until } from '../../support/processes.ts'
import { cli } from '../../support/stack.ts'
import { installStandIns, STAND_IN } from '../agents/stand-in.ts'
import { newAgent, runIn, specOf, VERSIONS } from './subject.ts'

const ROOT = join(import.meta.dirname, '../../..')
const agentdDir = join(import.meta.dirname, 'agentd')
const log = createLogger('test', 'silent')
/** A user without an account if the tests run as root. */
const ordinary: RunAs = isRoot() ? { uid: 54_321, gid: 54_321 } : {}
const made: string[] = []
after(async () => {
  for (const dir of made) await rm(dir, { recursive: true, force: true })
})

async function newFolder(owner: RunAs): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'berth-walls-'))
  made.push(dir)
  await chmod(dir, 0o711)
  if (owner.uid !== undefined) await chown(dir, owner.uid, owner.gid)
  return dir
}

/** Commands that would read or change Berth's own files and processes; each must fail or print nothing. */
const attacks = (dataDir: string, pid: number): string[] => [
  ...['jwt.key', 'secrets.key', 'agent-proxy.key', 'postgres.json'].map(
    (name) => `cat ${join(dataDir, name)}`,
  ),
  `cd ..; cat ../../jwt.key`,
  `cat /proc/1/root${join(dataDir, 'jwt.key')}`,
  ...['environ', 'mem', 'maps'].map((name) => `head -c 1 /proc/${pid}/${name}`),
  ...['cwd', 'root', 'exe'].map((name) => `readlink /proc/${pid}/${name}`),
  `ls /proc/${pid}/fd/`,
  `kill -0 ${pid}`,
  `grep -al BERTH_DATA_DIR /proc/[0-9]*/environ`,
  // With all rights that a new namespace gives.
  `unshare --user --map-root-user --mount sh -c 'umount -l /tmp; umount -l /; cat ${join(dataDir, 'jwt.key')}'`,
]

const needsRoot = isRoot() ? false : 'needs root'

it('an agent of root can read neither Berth’s keys nor its /proc', { skip: needsRoot }, async () => {
  const dir = await newFolder({})
  const [dataDir, enginesDir] = [join(dir, 'data'), join(dir, 'engines')]
  await mkdir(join(enginesDir, VERSIONS[0], 'node_modules/openclaw'), { recursive: true })
  await mkdir(dataDir, { mode: 0o711 })
  for (const name of ['jwt.key', 'secrets.key', 'agent-proxy.key', 'postgres.json'])
    await writeFile(join(dataDir, name), 'secret', { mode: 0o600 })
  const runtime = await openProcessRuntime({ dataDir, enginesDir, agentdDir, log })
  assert.equal(runtime.wall, 'user')
  const agentId = newAgent()
  await runtime.create(specOf(agentId))
  const { address } = await runtime.start(agentId)
  for (const command of attacks(dataDir, process.pid)) {
    const { code, output } = await runIn(address, `(${command}) 2>/dev/null`)
    assert(code !== 0 && output === '', `${command}: ${output}`)
  }
  await runtime.remove(agentId, { volume: true })
  await runtime.close()
})

const seen = await canEnter(ROOT, ordinary)
const namespaces = await runAs(
  'unshare',
  ['--user', '--map-root-user', '--mount', '--pid', '--fork', 'true'],
  ordinary,
)
const skip = !seen && 'an ordinary user cannot enter this folder'

describe('`npm start` of an ordinary user', { skip }, () => {
  let database: TestDatabase
  let dir: string
  let env: NodeJS.ProcessEnv
  let berth: Running
  let api: Client
  let agentId: string

  /** Starts it with the given settings. */
  async function start(settings: NodeJS.ProcessEnv): Promise<void> {
    const { PATH } = process.env
    const port = await freePort()
    env = {
      PATH,
      PORT: String(port),
      DATABASE_URL: database.url,
      BERTH_DATA_DIR: join(dir, 'data'),
      BERTH_ENGINES_DIR: join(dir, 'engines'),
      BERTH_ENGINE_VERSIONS: STAND_IN.good,
      BERTH_RUNTIME: 'process',
      BERTH_IPFS_ROUTING_URL: '',
      BERTH_EGRESS_PORT: String(await freePort()),
      BERTH_METRICS_PORT: String(await freeMetricsPorts()),
      BERTH_INTERVALS: 'agents=1',
      ...settings,
    }
    berth = run(process.execPath, [join(ROOT, 'bin/start.mjs'), 'start'], { env, group: true, ...ordinary })
    const url = `http://127.0.0.1:${port}`
    await until(
      'it is up, and its worker has written a row',
      async () => {
        if (berth.process.exitCode !== null) return true
        return (await fetch(`${url}/readyz`)).ok && (await processes(url)) !== undefined
      },
      180_000,
    )
    assert.equal(berth.process.exitCode, null, berth.output())
    api = new Client(url, await DocumentCheck.load(url), api?.key ?? (await cli(env)('keys', 'create')))
  }
  /** How agents run, according to `/readyz`. */
  async function processes(url = api.url): Promise<{ status: string; detail: string } | undefined> {
    const report = await (await fetch(`${url}/readyz`)).json()
    return (report as { parts: Record<string, { status: string; detail: string }> }).parts.processes
  }
  const statusOf = async () => (await api.get(`/v0/agents/${agentId}`)).body.agent.status
  const exec = async (command: string): Promise<string> => {
    const reply = await api.post(`/v0/agents/${agentId}/console/exec`, { command })
    assert.equal(reply.status, 200, JSON.stringify(reply.body))
    return reply.body.stdout
  }
  /** A setting that puts a secret where agents can see it, so that the isolation fails. */
  const open = { JWT_KEY_PREVIOUS_FILE: '/etc/passwd' }

  after(async () => {
    await berth?.end('SIGINT')
    await database?.stop()
  })

  it('an ordinary user who has accepted the risk creates agents that can read the keys', async () => {
    database = await startDatabase()
    dir = await newFolder(ordinary)
    await installStandIns(join(dir, 'engines'))
    await start({ ...open, BERTH_AGENTS_READ_KEYS: 'accept' })
    assert.deepEqual(await processes(), { status: 'ok', detail: WALLS.accepted })
    const reply = await api.post('/v0/agents', { name: 'first' })
    assert.equal(reply.status, 201, JSON.stringify(reply.body))
    agentId = reply.body.agent.agentId
    await until('it runs', async () => (await statusOf()) === 'running')
    assert.notEqual(await exec(`cat ${env.BERTH_DATA_DIR}/jwt.key`), '')
    await berth.end('SIGINT')
  })

  it('an ordinary user who has not accepted the risk keeps old agents but gets no new ones', async () => {
    await start(open)
    assert.deepEqual(await processes(), { status: 'degraded', detail: WALLS.none })
    assert.match(berth.output(), /without a wall: no agent can be created/)
    const reply = await api.post('/v0/agents', { name: 'second' })
    assert.deepEqual([reply.status, reply.headers.get('error-code')], [403, 'agents_not_walled'])
    assert.match(reply.body.error, /keys.*Docker.*root.*namespaces.*BERTH_AGENTS_READ_KEYS=accept/)
    await until('the existing agent runs', async () => (await statusOf()) === 'running')
    const cid = 'bafkqaekimvwgy3zamzzg63jaijsxe5dibi'
    assert.equal((await api.post('/v3/files/public/pin_by_cid', { cid })).status, 200)
    await berth.end('SIGINT')
  })

  it('an agent of an ordinary user in namespaces can read neither Berth’s keys nor its /proc', {
    skip: namespaces.ok ? false : namespaces.output,
  }, async () => {
    await start({})
    assert.deepEqual(await processes(), { status: 'ok', detail: WALLS.namespaces })
    // Its row still says so from before.
    const commands = `/v0/agents/${agentId}/console/exec`
    await until('it runs', async () => (await api.post(commands, { command: 'true' })).status === 200)
    assert.match(await exec('cat /proc/1/cmdline; pwd'), /agentd.*clawd/s)
    const roles: { pid: number }[] = JSON.parse(await readFile(join(dir, 'data/roles.json'), 'utf8'))
    // A process of the agent may have the same number as one of Berth's.
    const inside = (await exec('ls /proc')).split('\n')
    const pid = roles.map((role) => role.pid).find((number) => !inside.includes(String(number)))
    assert(pid, 'the agent sees no process of Berth')
    for (const command of attacks(join(dir, 'data'), pid))
      assert.equal(await exec(`(${command}) 2>/dev/null`), '', command)
    const reply = await api.post('/v0/agents', { name: 'second' })
    assert.equal(reply.status, 201, JSON.stringify(reply.body))
    await berth.end('SIGINT')
  })

  it('the runtime of an ordinary user refuses new agents with the same message', async () => {
    const folder = await newFolder(ordinary)
    const [dataDir, enginesDir] = [join(folder, 'data'), join(folder, 'engines')]
    await mkdir(join(enginesDir, VERSIONS[0], 'node_modules/openclaw'), { recursive: true })
    if (ordinary.uid !== undefined) await chown(enginesDir, ordinary.uid, ordinary.gid)
    const options = { dataDir, enginesDir, agentdDir, secretFiles: ['/etc/passwd'] }
    const program = join(import.meta.dirname, 'worker.program.ts')
    const given = JSON.stringify({ options, agents: [newAgent()] })
    const worker = run(process.execPath, [program, given], { env: { PATH: process.env.PATH }, ...ordinary })
    await until('it has ended', () => worker.process.exitCode !== null)
    await worker.end()
    assert(worker.output().includes(NOT_WALLED), worker.output())
  })
})
