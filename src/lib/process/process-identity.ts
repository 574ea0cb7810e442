/**
 * The identity of a process. A pid that was written to a file may belong to another program by the time it is read;
 * together with the start time of the process, it is unique.
 */
import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { hasCode, readIfExists } from '../files.ts'

const execute = promisify(execFile)

export interface ProcessIdentity {
  pid: number
  /** Opaque: equal for two readings of one process, different for a later process with the same pid. */
  birth: string
}

let bootId: string | undefined

/** The identity of a running process; null if no process has this pid, or only a zombie. */
export async function processIdentity(pid: number): Promise<ProcessIdentity | null> {
  if (process.platform !== 'linux') {
    const birth = await ps(pid, 'lstart')
    return birth ? { pid, birth } : null
  }
  const stat = await readProc(`/proc/${pid}/stat`)
  if (stat === null) return null
  // proc(5): the second field is the command in parentheses, which may itself contain spaces and parentheses.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const [state, startTime] = [fields[0], fields[22 - 3]]
  if (state === 'Z' || state === 'X') return null
  // The start time counts from boot, so it can repeat after a reboot.
  bootId ??= (await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim()
  return { pid, birth: `${bootId}:${startTime}` }
}

/** True while the identified process itself is still running. */
export async function isAlive(identity: ProcessIdentity): Promise<boolean> {
  return (await processIdentity(identity.pid))?.birth === identity.birth
}

/** True if `argument` is on the process's command line. Works for other users' processes too. */
export async function hasArgument(pid: number, argument: string): Promise<boolean> {
  if (process.platform !== 'linux') return (await ps(pid, 'command')).includes(argument)
  const commandLine = await readProc(`/proc/${pid}/cmdline`)
  return commandLine?.split('\0').includes(argument) ?? false
}

/** Waits until the process has ended, at most `ms` milliseconds. Returns whether it has. */
export async function waitForEnd(identity: ProcessIdentity, ms: number): Promise<boolean> {
  const deadline = performance.now() + ms
  while (await isAlive(identity)) {
    if (performance.now() > deadline) return false
    await sleep(20)
  }
  return true
}

/**
 * Ends a process: sends each signal in turn, and waits the given milliseconds after each. The identity is checked
 * before every signal, so that no other process is hit. Returns whether the process has ended.
 */
export async function endProcess(
  identity: ProcessIdentity,
  steps: readonly (readonly [NodeJS.Signals, number])[],
): Promise<boolean> {
  for (const [signal, ms] of steps) {
    if (!(await isAlive(identity))) return true
    try {
      process.kill(identity.pid, signal)
    } catch (error) {
      if (!hasCode(error, 'ESRCH')) throw error
    }
    if (await waitForEnd(identity, ms)) return true
  }
  return false
}

/** A column of ps(1) for a process; empty if there is no such process. */
async function ps(pid: number, column: string): Promise<string> {
  try {
    const env = { PATH: process.env.PATH, LC_ALL: 'C', TZ: 'UTC' }
    const { stdout } = await execute('ps', ['-ww', '-o', `${column}=`, '-p', String(pid)], {
      env,
      timeout: 5000,
    })
    return stdout.trim()
  } catch (error) {
    if ((error as { code?: unknown }).code === 1) return ''
    throw error
  }
}

/** A file in /proc; null if the process is gone (reading an open file then fails with ESRCH). */
async function readProc(path: string): Promise<string | null> {
  try {
    return await readIfExists(path)
  } catch (error) {
    if (hasCode(error, 'ESRCH')) return null
    throw error
  }
}
