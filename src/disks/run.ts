import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
/** To reserve a large image takes as long as its file system likes. */
const RUN_MS = 300_000

/** Runs a program of the system. @returns its output. @throws Error with what it said. */
export async function run(program: string, args: string[]): Promise<string> {
  try {
    const options = { env: { PATH, LC_ALL: 'C' }, timeout: RUN_MS, maxBuffer: 64 * 1024 * 1024 }
    return (await promisify(execFile)(program, args, options)).stdout
  } catch (error) {
    const { stderr, message } = error as Error & { stderr?: string }
    throw new Error(`${program} ${args[0]}: ${stderr?.trim() || message}`, { cause: error })
  }
}
