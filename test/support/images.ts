/** The processes that convert images, for tests. */
import { readdir, readFile } from 'node:fs/promises'

/** The pids of the image processes of a process (Linux). */
export async function childrenOf(pid: number): Promise<number[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
  const checked = await Promise.all(
    pids.map(async (child) => {
      const [stat, command] = await Promise.all([
        readFile(`/proc/${child}/stat`, 'utf8').catch(() => ''),
        readFile(`/proc/${child}/cmdline`, 'utf8').catch(() => ''),
      ])
      // proc(5): the parent is the second field after the command in parentheses.
      const parent = stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]
      return parent === `${pid}` && command.includes('convert.program.ts') ? [Number(child)] : []
    }),
  )
  return checked.flat()
}
