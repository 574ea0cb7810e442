/** `berth` as users install it: the bundle, without the server's code. */
import { spawn } from 'node:child_process'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'

export const BUNDLE = fileURLToPath(new URL('../../clients/cli/dist/berth.mjs', import.meta.url))

export interface Said {
  code: number | null
  stdout: string
  stderr: string
}

export interface Run {
  env: Record<string, string>
  cwd?: string
  stdin?: string | Uint8Array
  /** Ends a command that follows something, by Ctrl-C, once its output contains this. */
  until?: string
}

/** Runs `berth <args>` with nothing else in its environment; resolves to its exit code and output. */
export async function runBundle(args: string[], { env, cwd, stdin = '', until }: Run): Promise<Said> {
  const program = spawn(process.execPath, [BUNDLE, ...args], {
    env: { PATH: process.env.PATH, ...env },
    ...(cwd && { cwd }),
  })
  let seen = ''
  program.stdout.on('data', (chunk) => {
    seen += chunk
    // Only once: a second one would kill it.
    if (until === undefined || !seen.includes(until)) return
    until = undefined
    program.kill('SIGINT')
  })
  program.stdin.on('error', () => {}).end(stdin)
  const [stdout, stderr, code] = await Promise.all([
    text(program.stdout),
    text(program.stderr),
    new Promise<number | null>((resolve) => program.once('close', resolve)),
  ])
  return { code, stdout, stderr }
}

/** The same, of a command that must succeed: its output without the last line break. */
export async function berthOf(run: Run, ...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await runBundle(args, run)
  if (code !== 0) throw new Error(`berth ${args.join(' ')} ended with ${code}: ${stderr}`)
  return stdout.trimEnd()
}
