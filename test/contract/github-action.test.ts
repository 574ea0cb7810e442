/** The script of `deploy/github-action`, as a runner calls it. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { parse } from 'yaml'
import { useFolder } from '../support/folder.ts'
import { openContext } from './context.ts'

const ACTION = fileURLToPath(new URL('../../deploy/github-action', import.meta.url))
const { url, workspace } = await openContext()
const { api, keyed } = await workspace()
const dir = await useFolder('berth-action-')
await mkdir(join(dir, 'site'))
await writeFile(join(dir, 'site/index.html'), '<h1>Built</h1>')
const { inputs, runs } = parse(await readFile(join(ACTION, 'action.yml'), 'utf8'))

/** Runs the action's step; resolves to its outputs and log. */
async function run(given: Record<string, string>) {
  const values: Record<string, string> = { ...given }
  for (const [name, { default: fallback }] of Object.entries<{ default?: string }>(inputs))
    values[name] ??= fallback ?? ''
  const [step] = runs.steps
  const env: Record<string, string> = { PATH: process.env.PATH ?? '', GITHUB_ACTION_PATH: ACTION }
  for (const [name, value] of Object.entries<string>(step.env))
    env[name] = values[/^\$\{\{ inputs\.(\w+) \}\}$/.exec(value)?.[1] ?? ''] ?? ''
  env.GITHUB_OUTPUT = join(dir, `output-${Math.random()}`)
  env.GITHUB_STEP_SUMMARY = `${env.GITHUB_OUTPUT}-summary`
  const { stdout } = await promisify(execFile)('bash', ['-c', step.run], { env, cwd: dir })
  const lines = (await readFile(env.GITHUB_OUTPUT, 'utf8')).trimEnd().split('\n')
  const outputs = Object.fromEntries(lines.map((line) => [line.split('=', 1)[0], line.replace(/^\w+=/, '')]))
  return { outputs, stdout, summary: await readFile(env.GITHUB_STEP_SUMMARY, 'utf8') }
}

describe('the GitHub action', () => {
  it('uploads a folder, and outputs its CID, id and link', async () => {
    const { outputs, summary } = await run({ url, key: String(api.key), path: 'site', name: 'my site' })
    const { body } = await api.get(`/v3/files/public/${outputs.id}`)
    assert.deepEqual([body.data.cid, body.data.name], [outputs.cid, 'my site'])
    assert.match(outputs.url ?? '', new RegExp(`/ipfs/${outputs.cid}$`))
    assert.ok(summary.includes(`(${outputs.url})`))
  })
  it('uploads privately with a key that may do nothing else, and shows no link', async () => {
    const key = String((await keyed('org:private_files:write')).key)
    const { outputs, stdout, summary } = await run({ url, key, path: 'site/index.html', network: 'private' })
    assert.equal((await api.get(`/v3/files/private/${outputs.id}`)).status, 200)
    assert.doesNotMatch(stdout + summary, /http/)
  })
  it('fails for a refused key, and for an unknown network', async () => {
    await assert.rejects(run({ url, key: 'a.b.c', path: 'site' }), { code: 3 })
    await assert.rejects(run({ url, key: String(api.key), path: 'site', network: 'both' }), { code: 2 })
  })
})
