/**
 * A command line that runs a program as process 1 of a new pid namespace, like a container, and kills it when `unshare`
 * exits. Only root may do that directly; other users also get a user namespace. If the kernel refuses that too, the
 * program does not start, and the test fails with the message of unshare(1).
 */
export function inPidNamespace(program: string, ...args: string[]): [string, string[]] {
  const asUser = process.getuid?.() === 0 ? [] : ['--user', '--map-root-user']
  const options = [...asUser, '--pid', '--fork', '--kill-child', '--mount-proc']
  return ['unshare', [...options, process.execPath, program, ...args]]
}

/** Why such tests cannot run here; false on Linux. */
export const NO_PID_NAMESPACES = process.platform === 'linux' ? false : 'pid namespaces are a matter of Linux'
