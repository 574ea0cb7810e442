/** Memory and processor time of processes, from Linux. */
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'

/** Linux reports processor time in these, whatever the processor. */
const TICKS_PER_SECOND = 100

/**
 * Proportional set size of a process in bytes; 0 if it is gone. Pages that it shares with others, such as those of the
 * Node binary, are counted in part, so that the sizes of several processes may be summed.
 */
export async function proportionalBytes(pid: number): Promise<number> {
  const rollup = await readFile(`/proc/${pid}/smaps_rollup`, 'utf8').catch(() => '')
  return 1024 * Number(/^Pss:\s+(\d+)/m.exec(rollup)?.[1] ?? 0)
}

/** Seconds of processor time that a process has used; 0 if it is gone. */
export async function processorSeconds(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
  // The name, which comes first, may contain spaces. Then the 12th and 13th fields are user and system time.
  const [user = 0, system = 0] = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .slice(11, 13)
    .map(Number)
  return (user + system) / TICKS_PER_SECOND
}

/** Resets Linux's `VmHWM` (proc(5), `clear_refs`). */
export const resetPeak = (pid: number): Promise<void> => writeFile(`/proc/${pid}/clear_refs`, '5')

/** The peak resident memory of a process since {@link resetPeak}, in bytes. */
export async function peakBytes(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  return 1024 * Number(/^VmHWM:\s*(\d+) kB$/m.exec(status)?.[1])
}

/** The sum of a figure over a process and everything that it has started. */
export async function sumOfTree(pid: number, figureOf: (pid: number) => Promise<number>): Promise<number> {
  const children = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => '')
  const below = children.trim().split(' ').filter(Boolean).map(Number)
  const all = await Promise.all([figureOf(pid), ...below.map((child) => sumOfTree(child, figureOf))])
  return all.reduce((sum, figure) => sum + figure, 0)
}

/** The processes whose command line and environment contain all of these words. */
export async function findProcesses(...words: string[]): Promise<number[]> {
  const found: number[] = []
  for (const name of await readdir('/proc')) {
    if (!/^\d+$/.test(name)) continue
    const [command, environment] = await Promise.all([read(name, 'cmdline'), read(name, 'environ')])
    if (command && words.every((word) => `${command}${environment}`.includes(word))) found.push(Number(name))
  }
  return found
}

/** The only process like that. @throws Error unless there is exactly one. */
export async function findProcess(...words: string[]): Promise<number> {
  const found = await findProcesses(...words)
  const [pid] = found
  if (found.length !== 1 || !pid) throw new Error(`${found.length} processes have ${words.join(' ')}`)
  return pid
}

const read = (pid: string, file: string) => readFile(`/proc/${pid}/${file}`, 'utf8').catch(() => '')

/** Reads values repeatedly while `work` runs; resolves to the largest of each. */
export async function peaksDuring<K extends string>(
  read: () => Promise<Record<K, number>>,
  work: Promise<unknown>,
): Promise<Record<K, number>> {
  let under = true
  const settled = work.finally(() => {
    under = false
  })
  settled.catch(() => {})
  const peaks = await read()
  while (under) {
    for (const [name, value] of Object.entries(await read()) as [K, number][])
      peaks[name] = Math.max(peaks[name], value)
    await delay(250)
  }
  await settled
  return peaks
}
