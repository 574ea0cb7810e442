/** PostgreSQL refuses to run as root: which user runs it then, and how programs are run as that user. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { PostgresStartError } from './postgres-error.ts'

const execute = promisify(execFile)

/** The user of a child process: empty for our own. */
export type RunAs = { uid: number; gid: number } | { uid?: undefined; gid?: undefined }

/** PostgreSQL's own packages make the first; the second is ours, so that a later package does not meet it. */
const NAMES = ['postgres', 'berth-postgres'] as const

/** The environment of every program of PostgreSQL: none of our secrets, none of the caller's `PG…` settings. */
export const plainEnvironment = { PATH: process.env.PATH, LC_ALL: 'C', TZ: 'UTC' }

export const isRoot = () => process.getuid?.() === 0

/**
 * The user that runs a new cluster: ourselves, or as root a system user, which is made when there is none.
 * @throws PostgresStartError when root cannot make one.
 */
export async function serverUser(): Promise<RunAs> {
  if (!isRoot()) return {}
  const found = (await lookUp(NAMES[0])) ?? (await lookUp(NAMES[1])) ?? (await create(NAMES[1]))
  if (found) return found
  throw new PostgresStartError(
    'PostgreSQL does not run as root, there is no system user "postgres", and none could be made. ' +
      'Start Berth as a normal user, or set DATABASE_URL to a server of your own.',
  )
}

async function lookUp(name: string): Promise<RunAs | null> {
  const [uid, gid] = [await run('id', ['-u', name]), await run('id', ['-g', name])]
  return uid.ok && gid.ok ? { uid: Number(uid.output), gid: Number(gid.output) } : null
}

async function create(name: string): Promise<RunAs | null> {
  // shadow-utils (Debian, Fedora, …), then BusyBox.
  await run('useradd', ['--system', '--user-group', '--no-create-home', '--shell', '/usr/sbin/nologin', name])
  const made = await lookUp(name)
  if (made) return made
  await run('adduser', ['-S', '-D', '-H', name])
  return lookUp(name)
}

/** Whether a user may enter a folder; the system itself is asked, which knows about ACLs and every parent. */
export async function canEnter(path: string, as: RunAs): Promise<boolean> {
  return (await run('/bin/sh', ['-c', 'test -d "$1" && test -x "$1"', 'sh', path], as)).ok
}

/** Runs a program to its end, at most `timeout` ms. `output` is what it printed, both streams, trimmed. */
export async function run(
  file: string,
  args: string[],
  as: RunAs = {},
  timeout = 20_000,
): Promise<{ ok: boolean; output: string }> {
  try {
    const { stdout, stderr } = await execute(file, args, {
      ...as,
      cwd: '/',
      env: plainEnvironment,
      timeout,
      killSignal: 'SIGKILL',
    })
    return { ok: true, output: `${stdout}${stderr}`.trim() }
  } catch (error) {
    const failure = error as Error & { stdout?: string; stderr?: string; killed?: boolean }
    const printed = `${failure.stdout ?? ''}${failure.stderr ?? ''}`.trim()
    const reason = failure.killed ? `did not end within ${timeout / 1000} s` : failure.message
    return { ok: false, output: printed || reason }
  }
}
