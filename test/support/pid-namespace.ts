/**
 * A command line that runs a program as process 1 of a pid namespace of its own, as a container does, and ends it with
 * `unshare`. Only root may do that outright; others get a user namespace with it. Where the kernel refuses that as
 * well, the program does not start, and the test fails with what unshare(1) says.
 */
export function inPidNamespace(program: string, ...args: string[]): [string, string[]] {
  const asUser = process.getuid?.() === 0 ? [] : ['--user', '--map-root-user']
  const options = [...asUser, '--pid', '--fork', '--kill-child', '--mount-proc']
  return ['unshare', [...options, process.execPath, program, ...args]]
}

/** Why such tests do not run here; false on Linux. */
export const NO_PID_NAMESPACES = process.platform === 'linux' ? false : 'pid namespaces are a matter of Linux'
