/** The agent's repository, with the git of this machine. */
import { execFile } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { until, type Workspace } from './workspace.ts'

const GIT_MS = 60_000

interface Scripts {
  scripts: { build: { state: string; finishedAt: string | null }; start: { state: string } } | null
}

/** Clones the repository, adds a `build`, pushes, and waits until the agent has run it. */
export async function cloneAndPush(scene: Workspace): Promise<void> {
  const { screen, berth, agent, temp, signal } = scene
  const folder = join(temp, 'clone')
  const git = async (...args: string[]) => {
    const options = { signal, timeout: GIT_MS, env: { ...process.env, GIT_TERMINAL_PROMPT: '0' } }
    return (await promisify(execFile)('git', args, options)).stdout.trim()
  }
  const inClone = (...args: string[]) =>
    git('-C', folder, '-c', 'user.name=Demo', '-c', 'user.email=demo@example.test', ...args)
  await screen.step('Clone', async () => {
    const { host } = new URL(berth.url)
    await git('clone', '--quiet', `http://demo:${agent.token}@${host}/v0/agents/${agent.id}/git`, folder)
    return [
      undefined,
      `${(await inClone('ls-files')).split('\n').length} files, ${await inClone('rev-list', '--count', 'HEAD')} commits`,
    ]
  })
  await screen.step('Push', async () => {
    const path = join(folder, 'manifest.json')
    const manifest = JSON.parse(await readFile(path, 'utf8'))
    manifest.scripts = { ...manifest.scripts, build: 'echo "built at $(date -u +%T)" > workspace/built.txt' }
    await writeFile(path, `${JSON.stringify(manifest, null, 2)}\n`)
    await inClone('commit', '--quiet', '--all', '--message', 'Build it')
    await inClone('push', '--quiet', 'origin', 'main')
    const built = await until(signal, async () => {
      const { scripts } = await agent.call<Scripts>('GET', '/status')
      if (scripts?.build.state === 'failed') throw new Error('the build failed')
      const text = await agent.readFile('workspace/built.txt').catch(() => undefined)
      return scripts?.build.state === 'success' && text ? text.toString('utf8').trim() : undefined
    })
    return [undefined, `a build in manifest.json; the agent ran it: “${built}”`]
  })
}
