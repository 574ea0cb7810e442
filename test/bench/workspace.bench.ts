/**
 * An agent's workspace of 5,000 files and 98 MB in Docker. Saving all of it is compared with git and Kubo by
 * themselves, and clone and push with `git http-backend` with the same repository. Saving ten changes is measured as
 * well.
 */
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { BASE_IMAGE } from '../support/docker.ts'
import { enginesDir } from '../support/engines.ts'
import { startGitBackend } from '../support/git-backend.ts'
import { kuboBinary, startKubo } from '../support/kubo.ts'
import { startModel } from '../support/model.ts'
import { startStack } from '../support/stack.ts'
import { type Agent, Api } from './support/agent-api.ts'
import { median } from './support/numbers.ts'
import { print, type Result } from './support/report.ts'
import { compare, ms, time } from './support/time.ts'

export const title = 'Workspaces'

const FILES = 5000
const FOLDERS = 300
const BYTES = 98_000_000
const CHANGED = 10
const ROUNDS = 3
const PUSHED_BYTES = 10_000_000
/** The most that a sync of ten changes may take, in ms. */
const SYNC_MS = 200

export async function bench(): Promise<Result[]> {
  await using ending = new AsyncDisposableStack()
  const model = await startModel()
  ending.defer(() => model.stop())
  const env = {
    BERTH_RUNTIME: 'docker',
    BERTH_BASE_IMAGE: BASE_IMAGE,
    BERTH_ENGINES_DIR: enginesDir,
    // Only the snapshots that are requested.
    BERTH_INTERVALS: 'snapshots=86400',
    ...model.env,
  }
  const stack = await startStack({ kind: 'embedded', env })
  ending.defer(() => stack.stop())
  const api = new Api(stack, await stack.createKey())
  const agent = await api.create()
  ending.defer(() => api.remove(agent))
  const folder = await mkdtemp(join(tmpdir(), 'berth-bench-'))
  ending.defer(() => rm(folder, { recursive: true, force: true }))

  await fill(api, agent)
  const first = await time(() => sync(api, agent))
  const again: number[] = []
  for (let round = 0; round < ROUNDS; round++) {
    await touch(api, agent, round)
    again.push(await time(() => sync(api, agent)))
  }
  const repository = join(folder, 'bare.git')
  const { host } = new URL(api.url)
  const ours = `http://x:${agent.gatewayToken}@${host}/v0/agents/${agent.agentId}/git`
  await git('clone', '--quiet', '--bare', ours, repository)
  const backend = await startGitBackend(folder)
  ending.defer(() => backend.close())
  const theirs = `${backend.url}/bare.git`
  return [
    {
      what: `a snapshot of ${CHANGED} changed among ${FILES.toLocaleString('en')} files, against ${SYNC_MS} ms`,
      berth: ms(median(again)),
      bare: ms(SYNC_MS),
      ratio: median(again) / SYNC_MS,
      goal: { atMost: 1 },
    },
    ...(await byThemselves(folder, ours, first)),
    compare('git clone', await clones(folder, ours, theirs), { goal: { atMost: 1.3 } }),
    compare(`git push of ${PUSHED_BYTES / 1e6} MB`, await pushes(folder, ours, theirs)),
  ]
}

/** Text that differs from file to file, because git's compression ratio matters. */
async function fill(api: Api, agent: Agent): Promise<void> {
  const program = `const { mkdirSync, writeFileSync } = require('node:fs')
    for (let i = 0; i < ${FILES}; i++) {
      const folder = 'workspace/data/' + (i % ${FOLDERS})
      mkdirSync(folder, { recursive: true })
      let text = ''
      for (let n = 0; text.length < ${BYTES / FILES}; n++) text += 'line ' + n + ' of file ' + i + ': ' + Math.random() + '\\n'
      writeFileSync(folder + '/' + i + '.txt', text)
    }`
  await exec(api, agent, `node <<'PROGRAM'\n${program}\nPROGRAM`)
}

const touch = (api: Api, agent: Agent, round: number) =>
  exec(
    api,
    agent,
    `for i in $(seq ${CHANGED}); do echo ${round} >> workspace/data/$i/$((i + ${FOLDERS} * ${round})).txt; done`,
  )

async function exec(api: Api, { agentId }: Agent, command: string): Promise<void> {
  const { exitCode, stderr } = await api.call('POST', `/v0/agents/${agentId}/console/exec`, {
    command: `cd /home/node/clawd && ${command}`,
  })
  if (exitCode !== 0) throw new Error(stderr)
}

const sync = (api: Api, { agentId }: Agent) =>
  api.call('POST', `/v0/agents/${agentId}/snapshots/sync`, undefined, { prefer: 'wait=120' })

/** The same files through `git add`, `git commit` and `ipfs add -r`; no results without a Kubo. */
async function byThemselves(folder: string, ours: string, first: number): Promise<Result[]> {
  if (!kuboBinary) return []
  await using ending = new AsyncDisposableStack()
  const node = await startKubo()
  ending.defer(() => node.stop())
  const files = join(folder, 'files')
  await git('clone', '--quiet', ours, files)
  await rm(join(files, '.git'), { recursive: true })
  const inFiles = (...args: string[]) =>
    git('-C', files, '-c', 'user.name=b', '-c', 'user.email=b@example.test', ...args)
  const bare = await time(async () => {
    await inFiles('init', '--quiet')
    await inFiles('add', '--all')
    await inFiles('commit', '--quiet', '--message', 'all')
    const env = { ...process.env, IPFS_PATH: node.repo }
    await promisify(execFile)(kuboBinary as string, ['add', '--recursive', '--quieter', files], { env })
  })
  const what = 'the first snapshot, against git add, commit and ipfs add -r of the same files'
  return [{ what, berth: ms(first), bare: ms(bare), ratio: first / bare, goal: { atMost: 1.5 } }]
}

async function clones(folder: string, ours: string, theirs: string) {
  const target = join(folder, 'clone')
  const clone = async (url: string) => {
    const taken = await time(() => git('clone', '--quiet', '--no-checkout', url, target))
    await rm(target, { recursive: true })
    return taken
  }
  const rounds = []
  for (let i = 0; i < ROUNDS; i++) rounds.push({ berth: await clone(ours), bare: await clone(theirs) })
  return rounds
}

/** Pushes from one clone to both servers. */
async function pushes(folder: string, ours: string, theirs: string) {
  const clone = join(folder, 'pushed')
  await git('clone', '--quiet', '--no-checkout', ours, clone)
  const inClone = (...args: string[]) => git('-C', clone, ...args)
  await inClone('reset', '--quiet')
  const rounds = []
  for (let i = 0; i < ROUNDS; i++) {
    // Commits that the agent has saved by itself since then come first; the other server gets them with the push.
    await inClone('fetch', '--quiet', ours, 'main')
    await inClone('reset', '--quiet', '--soft', 'FETCH_HEAD')
    const path = join(clone, 'pushed.bin')
    await writeFile(path, randomBytes(PUSHED_BYTES))
    const { stdout } = await inClone('hash-object', '-w', path)
    await inClone('update-index', '--add', '--cacheinfo', `100644,${stdout.trim()},workspace/pushed.bin`)
    await inClone(
      '-c',
      'user.name=b',
      '-c',
      'user.email=b@example.test',
      'commit',
      '--quiet',
      '--message',
      `${i}`,
    )
    rounds.push({
      berth: await time(() => inClone('push', '--quiet', ours, 'HEAD:main')),
      bare: await time(() => inClone('push', '--quiet', theirs, 'HEAD:main')),
    })
  }
  return rounds
}

const git = (...args: string[]) =>
  promisify(execFile)('git', args, {
    env: { ...process.env, GIT_TERMINAL_PROMPT: '0' },
    maxBuffer: 10_000_000,
  })

if (import.meta.main) print(title, await bench())
