/** The package `@berth/client` as npm would publish it: the examples of its README compile and run. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { cp, mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { STAND_IN } from '../../integration/agents/stand-in.ts'
import { useFolder } from '../../support/folder.ts'
import { openContext } from '../context.ts'
import { remove, sharedAgent, useStandIn } from './context.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const PACKAGE = join(ROOT, 'clients/typescript')
const run = promisify(execFile)
const context = await openContext()

it('the examples of the client’s README compile and run with the published package', async () => {
  const { agentId, api } = await sharedAgent(context)
  // The client first reports a step after a second.
  await useStandIn(context, await context.sharedWorkspace(), { name: 'Researcher', version: STAND_IN.late })
  after(async () => {
    const { agents } = (await api.get('/v0/agents')).body
    for (const agent of agents) if (agent.name === 'Researcher') await remove(api, agent.agentId)
  })
  const dir = await install()
  const readme = await readFile(join(PACKAGE, 'README.md'), 'utf8')
  const blocks = [...readme.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, code = '']) => code)
  assert.ok(blocks.length > 5)
  await writeFile(join(dir, 'readme.ts'), blocks.join('\n'))
  await run(join(ROOT, 'node_modules/.bin/tsc'), ['-p', dir], { cwd: dir }).catch(({ stdout }) =>
    assert.fail(stdout),
  )
  const env = { ...process.env, BERTH_URL: context.url, BERTH_KEY: String(api.key), AGENT_ID: agentId }
  const { stdout } = await run(process.execPath, ['readme.ts'], { cwd: dir, env })
  for (const said of [/^owner in /m, /^9 of 9 bytes$/m, /^report\.md baf/m]) assert.match(stdout, said)
  assert.match(stdout, /^Researcher /m, 'the steps of a new agent')
  assert.match(stdout, /pong: Hello/, 'an agent replies')
  assert.match(
    stdout,
    /404 not_found There is no such agent$/m,
    'an error has a status, a code and a message',
  )
})

/** A folder in which the package is installed from its tarball. */
async function install(): Promise<string> {
  const dir = await useFolder('berth-client-')
  const { stdout } = await run('npm', ['pack', '--json', '--pack-destination', dir], { cwd: PACKAGE })
  const [{ filename }] = JSON.parse(stdout)
  await run('tar', ['-xzf', join(dir, filename)], { cwd: dir })
  const modules = join(dir, 'node_modules')
  await mkdir(join(modules, '@berth'), { recursive: true })
  await cp(join(dir, 'package'), join(modules, '@berth/client'), { recursive: true })
  for (const name of ['openapi-fetch', 'openapi-typescript-helpers', '@types', 'undici-types'])
    await symlink(join(ROOT, 'node_modules', name), join(modules, name))
  const compilerOptions = {
    ...{ target: 'es2022', module: 'nodenext', strict: true, noEmit: true, types: ['node'] },
    // The types of Node and of the package itself.
    skipLibCheck: false,
  }
  await writeFile(join(dir, 'package.json'), '{"type": "module"}')
  await writeFile(join(dir, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['readme.ts'] }))
  return dir
}
