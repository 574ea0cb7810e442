/** System users: for programs that root does not run as root, and how to run programs as such a user. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

/** The folder that root's servers share: copies of the binaries, and clusters whose data folder is unsuitable. */
export const SYSTEM_FOLDER = '/var/lib/berth'

const execute = promisify(execFile)

/** The user of a child process; empty for the current user. */
export type RunAs = { uid: number; gid: number } | { uid?: undefined; gid?: undefined }

/** A minimal environment for programs: without the operator's variables, secrets, and `PG…` settings. */
export const plainEnvironment = { PATH: process.env.PATH, LC_ALL: 'C', TZ: 'UTC' }

export const isRoot = () => process.getuid?.() === 0

/** The first of these system users that exists; otherwise the last name is created. Null if that fails. */
export async function systemUser(...names: [string, ...string[]]): Promise<RunAs | null> {
  for (const name of names) {
    const found = await lookUp(name)
    if (found) return found
  }
  return create(names[names.length - 1] as string)
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

/** True if the user may enter the folder. The system itself checks, because it knows ACLs and every parent. */
export async function canEnter(path: string, as: RunAs): Promise<boolean> {
  return (await run('/bin/sh', ['-c', 'test -d "$1" && test -x "$1"', 'sh', path], as)).ok
}

/** Runs a program to its end, at most `timeout` ms. `output` is the combined output of both streams, trimmed. */
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
