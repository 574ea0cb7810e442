/** A part of a backup: an agent deleted by mistake, and a workspace restored into a Berth that has others. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { copyFile, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { FolderStore } from '../../src/backup/folder-store.ts'
import { readManifest } from '../../src/backup/layout.ts'
import { OF_NOBODY, PART_TABLES } from '../../src/backup/part-rows.ts'
import { installStandIns, STAND_IN } from '../integration/agents/stand-in.ts'
import { startDatabase, type TestDatabase } from '../support/database.ts'
import { gatewayReader } from '../support/gateway.ts'
import { until } from '../support/processes.ts'
import { runCli, type Stack, startStack } from '../support/stack.ts'
import {
  backupsOf,
  berth,
  type Content,
  clientOf,
  type Filled,
  fill,
  makeDir,
  readTables,
  upload,
} from './world.ts'

const NOTE = 'clawd/workspace/note.txt'
/** A file of the engine that no snapshot has. */
const STATE = '.openclaw/state-of-the-engine'
/** A busy machine may need longer than the time after which a running operation returns 202. */
const AT_LENGTH = { prefer: 'wait=120' }

describe('a part of a backup', { timeout: 400_000 }, () => {
  let root: string
  let removeRoot: () => Promise<void>
  let settings: NodeJS.ProcessEnv
  let stack: Stack | undefined
  /** For commands while Berth is stopped. */
  let env: NodeJS.ProcessEnv
  let dir: string
  let filled: Filled
  let agentId: string
  let otherKey: string
  const others: Content[] = []
  const databases: TestDatabase[] = []
  /** A separate Berth: its database settings and its data folder. */
  const place = async (name: string) => {
    const database = await startDatabase({ isEmpty: true })
    databases.push(database)
    return { DATABASE_URL: database.url, BERTH_DATA_DIR: join(root, name) }
  }
  let first: NodeJS.ProcessEnv
  const start = async (where = first) => {
    stack = await startStack({ env: { ...settings, ...where } })
    return stack
  }
  const stop = async () => {
    await stack?.stop()
    stack = undefined
  }
  before(async () => {
    const made = await makeDir()
    root = made.path
    removeRoot = made.remove
    dir = join(root, 'backups')
    await installStandIns(join(root, 'engines'))
    settings = {
      BERTH_RUNTIME: 'process',
      BERTH_ENGINES_DIR: join(root, 'engines'),
      BERTH_ENGINE_VERSIONS: STAND_IN.good,
    }
    first = await place('first')
    const { url, createKey, berth: command, env: started } = await start()
    env = started
    filled = await fill({ url, createKey })
    agentId = await newAgent(filled.api)
    await exec(filled.api, agentId, `echo mine > ~/${NOTE}; mkdir -p ~/.openclaw; echo kept > ~/${STATE}`)
    for (const name of ['TOKEN', 'GONE'])
      await filled.api.post('/v0/secrets', { name, value: name, type: 'secret' })
    const { secrets } = (await filled.api.get('/v0/secrets')).body
    const secretIds = secrets.map(({ id }: { id: string }) => id)
    assert.equal((await filled.api.post(`/v0/agents/${agentId}/secrets`, { secretIds })).status, 200)
    const synced = await filled.api.post(`/v0/agents/${agentId}/snapshots/sync`, {}, AT_LENGTH)
    assert.equal(synced.status, 200)
    await command('workspaces', 'create', 'other', '--plan', 'unlimited', '--owner', 'somebody')
    otherKey = await createKey('--workspace', 'other')
    const other = await clientOf(url, otherKey)
    const group = (await other.post('/v3/groups/public', { name: 'of the other' })).body.data
    for (const bytes of [randomBytes(3_000_000), randomBytes(10)])
      others.push(await upload(other, 'public', bytes, { name: 'other', group_id: group.id }))
    await other.put(`/v3/files/public/swap/${others[1]?.cid}`, { swap_cid: others[0]?.cid })
    others.push(await upload(other, 'private', randomBytes(500_000), { name: 'closed' }))
    await other.post('/v0/secrets', { name: 'OTHERS', value: 'value of the other', type: 'secret' })
    await berth(env, 'backup', dir)
  })
  after(async () => {
    await stop()
    for (const database of databases) await database.stop()
    await removeRoot?.()
  })

  it('the restore of a part knows for every table whose rows it has', async () => {
    const { tables } = await readManifest(new FolderStore(dir), (await backupsOf(dir)).at(-1) ?? '')
    assert.deepEqual(
      tables.map(({ name }) => name),
      [...Object.keys(PART_TABLES), ...OF_NOBODY].sort(),
    )
  })

  it('the restore of a part is refused if Berth runs, already has it, or the backup lacks it', async () => {
    const refused = async (what: RegExp, ...args: string[]) => {
      const { code, stderr } = await runCli(env, 'restore', dir, ...args)
      assert.equal(code, 1)
      assert.match(stderr, what)
    }
    await refused(/Berth runs on this database: stop it/, '--agent', agentId)
    await stop()
    await refused(
      /the agent \w+ is here: what is here is not overwritten; delete it first/,
      '--agent',
      agentId,
    )
    await refused(/the workspace other is here: what is here is not overwritten/, '--workspace', 'other')
    await refused(/the backup .* has no agent xabcdefg, or it was deleted by then\n$/, '--agent', 'xabcdefg')
    await refused(/the backup .* has no workspace nobody/, '--workspace', 'nobody')
    await refused(/cannot be used with/, '--workspace', 'other', '--agent', agentId)
  })

  it('the restore of a part restores an agent deleted by mistake with its home, and nothing else', async () => {
    const { url } = await start()
    const api = await clientOf(url, filled.key)
    const { secrets } = (await api.get('/v0/secrets')).body
    const gone = secrets.find(({ name }: { name: string }) => name === 'GONE')
    assert.equal((await api.delete(`/v0/agents/${agentId}`, AT_LENGTH)).status, 200)
    assert.equal((await api.delete(`/v0/secrets/${gone.id}`)).status, 200)
    filled.contents.push(await upload(api, 'private', randomBytes(70_000), { name: 'after the backup' }))
    await stop()
    // In the newest backup it is already deleted.
    const [whole = ''] = await backupsOf(dir)
    await berth(env, 'backup', dir)
    const former = await readTables(dir)
    const newest = await runCli(env, 'restore', dir, '--agent', agentId)
    assert.match(newest.stderr, new RegExp(`--backup ${whole} is the newest one that has it`))

    const args = ['restore', dir, '--agent', agentId, '--backup', whole]
    for (const point of ['restore-part-after-homes', 'restore-part-before-commit']) {
      const killed = await runCli({ ...env, BERTH_CRASH_AT: `${point}@${join(root, point)}` }, ...args)
      assert.notEqual(killed.code, 0, point)
    }
    const said = await berth(env, ...args)
    assert.match(
      said,
      new RegExp(`✔ restored the agent ${agentId} of ${whole}: \\d+ rows, \\d+ roots?, 1 home of agents`),
    )
    assert.match(said, / {2}the secret GONE is not here any more: left out\n/)
    assert.match((await runCli(env, ...args)).stderr, /is here: what is here is not overwritten/)

    await berth(env, 'backup', join(root, 'afterwards'))
    const now = await readTables(join(root, 'afterwards'))
    for (const [table, rows] of Object.entries(former)) {
      const kept = linesOf(rows).filter((line) => !line.includes(agentId))
      for (const line of kept) assert.ok(now[table]?.includes(line), `${table}: ${line}`)
      if (!/^(agent|engine_state|snapshot)/.test(table)) assert.equal(now[table], rows, table)
    }
    assert.equal(linesOf(now['agent_secret.copy.gz']).length, 1)
    assert.equal(linesOf(now['snapshot.copy.gz']).length, 1)

    const again = await clientOf((await start()).url, filled.key)
    await agentRuns(again, agentId)
    assert.equal(await exec(again, agentId, `cat ~/${NOTE} ~/${STATE}`), 'mine\nkept\n')
    const { snapshots } = (await again.get(`/v0/agents/${agentId}/snapshots`)).body
    assert.equal(snapshots.length, 1)
    await stop()
  })

  it('the restore of a part adds a workspace with everything it has to another Berth', async () => {
    await stop()
    const [whole = ''] = await backupsOf(dir)
    const second = await place('second')
    const target = { ...env, ...second }
    await berth(target, 'migrate')
    // A user with the same name as a user of the backup.
    await berth(target, 'workspaces', 'create', 'local', '--owner', 'somebody')
    await berth(target, 'keys', 'create', '--workspace', 'local')
    await berth(target, 'backup', join(root, 'local'))
    const local = await readTables(join(root, 'local'))
    const args = ['restore', dir, '--backup', whole, '--workspace', 'other']
    assert.match(
      (await runCli(target, ...args)).stderr,
      /JWT_KEY: is, in .*jwt\.key, another key than that of the backup, which opens its API keys/,
    )
    for (const name of ['jwt.key', 'secrets.key'])
      await copyFile(join(root, 'first', name), join(root, 'second', name))
    const killed = await runCli(
      { ...target, BERTH_CRASH_AT: `restore-part-before-commit@${join(root, 'workspace')}` },
      ...args,
    )
    assert.notEqual(killed.code, 0)
    const said = await berth(target, ...args)
    assert.match(said, /✔ restored the workspace other of .*: \d+ rows, 3 roots, 0 homes of agents\n/)
    assert.match(said, / {2}the user somebody is another one here: it is somebody-\w{12}\n/)
    assert.match(
      await berth(target, 'restore', dir, '--backup', whole, '--workspace', 'default'),
      /✔ restored the workspace default of .*, 1 home of agents\n/,
    )

    const admins = (at: number) =>
      databases.at(at)?.pool.query('SELECT name FROM app_user WHERE is_admin ORDER BY name')
    assert.deepEqual((await admins(0))?.rows, [{ name: 'owner' }])
    assert.deepEqual((await admins(1))?.rows, [], 'an admin of one instance is not an admin of the other')

    await berth(target, 'backup', join(root, 'both'))
    const both = await readTables(join(root, 'both'))
    const original = await tablesOf(dir, whole)
    const ids = linesOf(original['workspace.copy.gz']).map((line) => line.slice(0, 36))
    assert.equal(ids.length, 2)
    const isTheirs = (line: string) => !ids.some((id) => line.includes(id))
    for (const table of Object.keys(original)) {
      // Swaps are renumbered.
      const mine = (rows: string | undefined) =>
        linesOf(rows)
          .filter((line) => !isTheirs(line))
          .map((line) => (table.startsWith('swap.') ? line.replace(/^\d+/, '') : line))
          .sort()
      // The audit has no entries for requests that another Berth served.
      const brought = table === 'audit.copy.gz' ? [] : mine(original[table])
      assert.deepEqual(mine(both[table]), brought, table)
      const theirs = (rows: string | undefined) => linesOf(rows).filter(isTheirs)
      for (const line of linesOf(local[table])) assert.ok(theirs(both[table]).includes(line), table)
    }
    const { url } = await start(second)
    const api = await clientOf(url, otherKey)
    const { files } = (await api.get('/v3/files/public')).body.data
    assert.deepEqual(
      files.map(({ name }: { name: string }) => name),
      ['other', 'other'],
    )
    const gateway = gatewayReader(url, 'other.gateway.localhost')
    for (const { cid } of others.slice(0, 2)) {
      const { bytes } = await gateway.get(`/ipfs/${cid}`)
      assert.ok(others[0]?.bytes.equals(bytes), 'the second one is swapped to the first')
    }
    const { secrets } = (await api.get('/v0/secrets')).body
    assert.deepEqual(
      secrets.map(({ name }: { name: string }) => name),
      ['OTHERS'],
    )
    const owner = await clientOf(url, filled.key)
    await agentRuns(owner, agentId)
    assert.equal(await exec(owner, agentId, `cat ~/${NOTE} ~/${STATE}`), 'mine\nkept\n')
    await stop()
  })
})

const linesOf = (rows = ''): string[] => rows.split('\n').filter(Boolean).sort()

async function tablesOf(dir: string, name: string): Promise<Record<string, string>> {
  const { gunzipSync } = await import('node:zlib')
  const { tables } = await readManifest(new FolderStore(dir), name)
  const found: Record<string, string> = {}
  for (const table of tables) {
    const path = join(dir, 'backups', name, 'tables', `${table.name}.copy.gz`)
    found[`${table.name}.copy.gz`] = gunzipSync(await readFile(path)).toString()
  }
  return found
}

async function newAgent(api: Filled['api']): Promise<string> {
  const made = await api.post('/v0/agents', { name: 'Mistaken' }, { prefer: 'respond-async' })
  const { agentId } = made.body.agent
  await until('the agent runs', async () => {
    const { agent } = (await api.get(`/v0/agents/${agentId}`)).body
    if (agent.status === 'not_running') throw new Error(agent.statusReason)
    return agent.status === 'running'
  })
  return agentId
}

/** Until a worker has checked it, its row says that it runs, as it did at the backup. */
async function agentRuns(api: Filled['api'], agentId: string): Promise<void> {
  await until('the agent runs', async () => {
    const { status } = await api.post(`/v0/agents/${agentId}/console/exec`, { command: 'true' })
    return status === 200
  })
}

/** Runs a command as soon as the agent can be reached. */
function exec(api: Filled['api'], agentId: string, command: string): Promise<string> {
  return until(`\`${command}\` runs`, async () => {
    const { status, body } = await api.post(`/v0/agents/${agentId}/console/exec`, { command })
    if (status !== 200) throw new Error(JSON.stringify(body))
    return body.stdout
  })
}
