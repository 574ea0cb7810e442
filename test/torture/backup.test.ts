/**
 * The drill: a Berth with files and agents is backed up under load, with a SIGKILL halfway, lost, and restored on
 * another data folder. Every row and every byte is compared, and the agent runs again with its own files.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import {
  type Content,
  clientOf,
  type Filled,
  fill,
  makeDir,
  readBlocks,
  readTables,
  upload,
} from '../backup/world.ts'
import { installStandIns, STAND_IN } from '../integration/agents/stand-in.ts'
import { gatewayReader } from '../support/gateway.ts'
import { until } from '../support/processes.ts'
import { runCli, type Stack, startStack } from '../support/stack.ts'

const CLI = fileURLToPath(new URL('../../bin/berth.mjs', import.meta.url))
const NOTE = 'clawd/workspace/note.txt'
/** A file of the engine that no snapshot has. */
const STATE = '.openclaw/state-of-the-engine'

let root: string
let removeRoot: () => Promise<void>
let settings: NodeJS.ProcessEnv
let stack: Stack | undefined

before(async () => {
  const made = await makeDir()
  root = made.path
  removeRoot = made.remove
  await installStandIns(join(root, 'engines'))
  settings = {
    BERTH_RUNTIME: 'process',
    BERTH_ENGINES_DIR: join(root, 'engines'),
    BERTH_ENGINE_VERSIONS: STAND_IN.good,
  }
})
after(async () => {
  await stack?.stop()
  await removeRoot?.()
})

it('a lost Berth is restored from a backup that was made under load and killed halfway', {
  timeout: 240_000,
}, async () => {
  const dir = join(root, 'backups')
  const first = await startStack({ env: { ...settings, BERTH_DATA_DIR: join(root, 'first') } })
  stack = first
  const env = { ...first.env, BERTH_BACKUP_PASSPHRASE: 'a passphrase of the tests' }
  const filled = await fill(first)
  const agentId = await newAgent(filled, first)
  const home = join(root, 'first/agents', agentId, 'home')
  await exec(filled, agentId, `echo mine > ~/${NOTE}; mkdir -p ~/.openclaw; echo kept > ~/${STATE}`)

  const load = startLoad(filled)
  await until('the load has begun', () => load.done.length > 5)
  const killed = spawn(process.execPath, [CLI, 'backup', dir], { env, stdio: 'ignore' })
  await until('blocks are written', async () => (await readBlocks(dir).catch(() => new Map())).size > 3)
  killed.kill('SIGKILL')
  await new Promise((resolve) => killed.once('close', resolve))
  const during = await runCli(env, 'backup', dir)
  assert.equal(during.code, 0, during.stdout + during.stderr)
  await load.stop()
  // The backup made during the load is as good as the one after it.
  assert.equal((await runCli(env, 'backup', 'verify', dir)).code, 0)
  const last = await runCli(env, 'backup', dir, '--with-keys')
  assert.match(last.stdout, /agents {4}1 home/)
  const note = await readFile(join(home, NOTE), 'utf8')
  await first.stop()

  const target = { ...env, BERTH_DATA_DIR: join(root, 'second') }
  const restored = await runCli(target, 'restore', dir)
  assert.equal(restored.code, 0, restored.stdout + restored.stderr)
  assert.match(restored.stdout, /1 home of agents/)
  const copy = join(root, 'copy')
  assert.equal((await runCli(target, 'backup', copy)).code, 0)
  assert.deepEqual(await readTables(copy), await readTables(dir))
  const blocks = await readBlocks(dir)
  for (const [path, hash] of await readBlocks(copy)) assert.equal(blocks.get(path), hash)
  const found = join(root, 'second/agents', agentId, 'home')
  for (const path of [NOTE, STATE]) assert.ok(await readFile(join(found, path)))

  stack = await startStack({ env: { ...settings, BERTH_DATA_DIR: join(root, 'second') } })
  const api = await clientOf(stack.url, filled.key)
  const gateway = gatewayReader(stack.url, 'default.gateway.localhost')
  for (const { cid, bytes, network } of [...filled.contents.slice(1), ...load.done])
    if (network === 'public') assert.deepEqual((await gateway.get(`/ipfs/${cid}`)).bytes, bytes)
  await until('the agent runs', async () => {
    const { agent } = (await api.get(`/v0/agents/${agentId}`)).body
    return agent.status === 'running' && (await exec({ api }, agentId, 'true').then(() => true))
  })
  assert.equal(await exec({ api }, agentId, `cat ~/${NOTE} ~/${STATE}`), `${note}kept\n`)
})

async function newAgent({ api }: Filled, { output }: Stack): Promise<string> {
  const made = await api.post('/v0/agents', { name: 'Drilled' }, { prefer: 'respond-async' })
  const { agentId } = made.body.agent
  await until('the agent runs', async () => {
    const { agent } = (await api.get(`/v0/agents/${agentId}`)).body
    if (agent.status === 'not_running') throw new Error(`${agent.statusReason}\n${output()}`)
    return agent.status === 'running'
  })
  return agentId
}

/** Runs a command as soon as the agent can be reached. */
function exec({ api }: Pick<Filled, 'api'>, agentId: string, command: string): Promise<string> {
  return until(`\`${command}\` runs`, async () => {
    const { status, body } = await api.post(`/v0/agents/${agentId}/console/exec`, { command })
    if (status !== 200) throw new Error(JSON.stringify(body))
    return body.stdout
  })
}

/** Uploads files one after the other, and deletes every third one again. */
function startLoad({ api }: Filled): { done: Content[]; stop(): Promise<void> } {
  const done: Content[] = []
  let isOver = false
  const running = (async () => {
    for (let n = 0; !isOver; n++) {
      const made = await upload(api, n % 2 ? 'public' : 'private', randomBytes(2000 + n), {
        name: `load-${n}`,
      })
      if (n % 3 > 0) done.push(made)
      else await api.delete(`/v3/files/${made.network}/${made.id}`)
    }
  })()
  return {
    done,
    async stop() {
      isOver = true
      await running
    },
  }
}
