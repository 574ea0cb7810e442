import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { link, lstat, mkdir, open, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { normalize } from 'node:path/posix'
import { AgentdError, isErrno } from './errors.ts'
import type { Log } from './logs.ts'
import type { Paths } from './paths.ts'
import type { SeedRequest } from './protocol.ts'
import type { Agent, Service } from './server.ts'
import { inFolder, makeFolder, refuse } from './tree.ts'

const SEED_BYTES = 8_388_608
const GIT_MS = 30_000

/** `PUT /v1/workspace`: makes the agent's root, writes the files that are not there, and makes it a git repository. */
export function workspaceService({ paths, log, gateway }: Agent): Service {
  return {
    routes: [
      {
        method: 'PUT',
        path: '/v1/workspace',
        fenced: true,
        async handle(call) {
          const { files } = await call.json<SeedRequest>(SEED_BYTES)
          if (!Array.isArray(files)) throw new AgentdError('bad_request', 'files must be a list')
          const named = files.map(checkFile)
          await makeRoot(paths)
          for (const { names, text } of named) await writeMissing(paths.root, names, text)
          await initRepository(paths, { log, env: gateway.env })
          return { body: {} }
        },
      },
    ],
  }
}

/** Makes the folders that everything else of agentd relies on. */
export async function makeRoot(paths: Paths): Promise<void> {
  for (const folder of [paths.root, paths.state, paths.tmp])
    await mkdir(folder, { recursive: true, mode: 0o700 })
}

function checkFile(file: SeedRequest['files'][number]): { names: string[]; text: string } {
  const { path, text } = file ?? {}
  if (typeof path !== 'string' || typeof text !== 'string')
    throw new AgentdError('bad_request', 'files: each has a path and a text')
  const names = normalize(path).split('/')
  if (path.includes('\0') || names.some((name) => name === '' || name === '.' || name === '..'))
    throw new AgentdError('bad_request', `files: ${path} is not a path below the root`)
  return { names, text }
}

/** The file appears with all of its text, or not at all; whatever has its name stays. */
async function writeMissing(root: string, names: string[], text: string): Promise<void> {
  await using folder = await makeFolder(root, names.slice(0, -1))
  const path = inFolder(folder, names.at(-1) as string)
  const part = inFolder(folder, `.${randomUUID()}.part`)
  try {
    await using file = await open(part, 'wx', 0o644)
    await file.writeFile(text)
    await link(part, path)
  } catch (error) {
    if (!isErrno(error, 'EEXIST')) refuse(error)
  } finally {
    await unlink(part).catch(() => {})
  }
}

/** `git init` with branch main, when the root has no repository. Without git the agent works, but has no history. */
async function initRepository(
  { root }: Paths,
  { log, env }: { log: Log; env: Readonly<Record<string, string>> },
): Promise<void> {
  // Anything of that name is the agent's own.
  if (await lstat(join(root, '.git')).catch(() => undefined)) return
  const child = spawn('git', ['init', '--quiet', '--initial-branch=main', root], {
    cwd: root,
    env: { ...env, GIT_CONFIG_NOSYSTEM: '1' },
    stdio: ['ignore', 'ignore', 'pipe'],
    timeout: GIT_MS,
    killSignal: 'SIGKILL',
  })
  let said = ''
  child.stderr.on('data', (chunk: Buffer) => {
    if (said.length < 1000) said += chunk.toString('utf8')
  })
  const failure = await new Promise<string | null>((resolve) => {
    child.once('error', (error) => resolve(error.message))
    child.once('close', (code) => resolve(code === 0 ? null : said.trim() || `exit code ${code}`))
  })
  if (failure) log.warn(`the agent's root could not be made a git repository: ${failure}`)
}
