import { randomUUID } from 'node:crypto'
import { link, open, unlink } from 'node:fs/promises'
import { normalize } from 'node:path/posix'
import { AgentdError, isErrno } from './agentd-errors.ts'
import { makeFolders } from './folders.ts'
import type { Paths } from './paths.ts'
import type { SeedRequest } from './protocol.ts'
import type { RepositoryService } from './repository/repository-service.ts'
import type { Agent, Service } from './server.ts'
import { inFolder, makeFolder, refuse } from './tree.ts'

const SEED_BYTES = 8_388_608

/** `PUT /v1/workspace`: creates the agent's root, writes missing files, and makes it a git repository. */
export function workspaceService({ paths }: Agent, repository: RepositoryService): Service {
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
          await repository.make()
          return { body: {} }
        },
      },
    ],
  }
}

/** Creates the folders that everything else in agentd relies on. */
export async function makeRoot(paths: Paths): Promise<void> {
  for (const folder of [paths.root, paths.state, paths.tmp]) await makeFolders(folder)
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

/** The file appears with all of its text, or not at all; an existing entry with its name stays. */
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
