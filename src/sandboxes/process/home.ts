/** Reads and writes the home of a process agent as a tar. */
import { spawn } from 'node:child_process'
import { rename, rm } from 'node:fs/promises'
import { pipeline } from 'node:stream/promises'
import { SandboxError } from '../../errors.ts'
import { plainEnvironment, type RunAs } from '../../lib/process/system-user.ts'
import { type AgentPaths, makeOwnFolder, removeOwnFolder } from './state.ts'

/** tar's exit code for a file that changed while it was read. */
const CHANGED = 1

/**
 * Reads a home, even while the agent writes to it. Files get the owner that containers use; a home unpacked here
 * belongs to the agents' user all the same.
 */
export async function* readHome(
  { home }: AgentPaths,
  user: RunAs,
  signal: AbortSignal | undefined,
): AsyncGenerator<Uint8Array> {
  const args = [
    '--create',
    '--file=-',
    '--numeric-owner',
    '--owner=1000',
    '--group=1000',
    '--directory',
    home,
    '.',
  ]
  const { child, ended } = start(args, user, signal)
  child.stdin.end()
  yield* child.stdout
  await ended(CHANGED)
}

/** Replaces an agent's home with the contents of a tar, completely or not at all. */
export async function writeHome(
  paths: AgentPaths,
  content: AsyncIterable<Uint8Array>,
  user: RunAs,
  signal: AbortSignal | undefined,
): Promise<void> {
  const draft = `${paths.home}.new`
  await removeOwnFolder(draft, user)
  await makeOwnFolder(draft, user)
  const args = ['--extract', '--file=-', '--preserve-permissions', '--no-same-owner', '--directory', draft]
  const { child, ended } = start(args, user, signal)
  child.stdout.resume()
  let isWhole = false
  const all = async function* () {
    yield* content
    isWhole = true
  }
  // tar's message says more than the error about its closed input.
  const piped = pipeline(all, child.stdin).catch((error) => error as Error)
  await ended(0)
  const failure = await piped
  // Node closes the pipe to an exited process, possibly before it notices that everything was read.
  if (failure && !isWhole) throw failure
  await removeOwnFolder(paths.home, user)
  await rm(paths.home, { recursive: true, force: true })
  await rename(draft, paths.home)
}

function start(args: string[], user: RunAs, signal: AbortSignal | undefined) {
  const child = spawn('tar', args, { ...user, cwd: '/', env: plainEnvironment, signal })
  let said = ''
  child.stderr.on('data', (chunk) => {
    said = `${said}${chunk}`.slice(-500)
  })
  const exited = new Promise<number>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code) => resolve(code ?? -1))
  })
  exited.catch(() => {})
  const ended = async (worst: number) => {
    const code = await exited
    if (code < 0 || code > worst)
      throw new SandboxError('internal', `tar failed: ${said.trim() || `code ${code}`}`)
  }
  return { child, ended }
}
