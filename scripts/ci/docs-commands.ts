/**
 * Runs the commands that a document shows, to check that they work:
 *
 * node scripts/ci/docs-commands.ts docs/operations.md compose
 *
 * Each shell block names after `sh` where it runs (see TAGS). The blocks of one tag run from top to bottom in one bash,
 * which stops at the first command that fails and reports its line in the document. Documents use port 3000 (or the
 * range from it to 3001); if PORT is set, the commands use that one.
 */
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'

/** Where the commands of a block run. */
export const TAGS = {
  start: 'against a running `npm start`: test/contract/openclaw/docs-commands.test.ts',
  compose: 'in a fresh clone, where it starts the stack: scripts/ci/compose.sh',
  postgres: 'beside a PostgreSQL server: test/backup/moves.test.ts',
  backup: 'against a Berth with an S3 server and an agent: test/backup/docs-commands.test.ts',
  cluster: 'in an empty cluster: test/integration/kubernetes/chart.test.ts',
  moving: 'there, with a backup in a bucket: test/integration/kubernetes/chart-move.test.ts',
  stopped: 'there as well, after the agent was deleted and Berth stopped',
  ci: 'as steps of CI itself: .ci/run and .ci/first-start',
} as const

export type Tag = keyof typeof TAGS

export interface Block {
  /** The line of its first command, counted from 1. */
  line: number
  /** The word after `sh`. */
  tag: string
  commands: string[]
}

/** The shell blocks in Markdown, in order. */
export function shellBlocks(markdown: string): Block[] {
  const blocks: Block[] = []
  let open: Block | 'other' | undefined
  for (const [index, line] of markdown.split('\n').entries()) {
    const fence = /^ *```(.*)$/.exec(line)?.[1]?.trim()
    if (fence === undefined) {
      if (open && open !== 'other') open.commands.push(line)
    } else if (open) {
      open = undefined
    } else {
      const [language, ...rest] = fence.split(' ')
      open = 'other'
      if (!['sh', 'bash', 'shell', 'console'].includes(language ?? '')) continue
      open = { line: index + 2, tag: rest.join(' '), commands: [] }
      blocks.push(open)
    }
  }
  return blocks
}

/**
 * A bash script in which each command has the line number that it has in the document. @throws Error if no block has
 * the tag.
 */
export function scriptOf(markdown: string, name: string, tag: Tag, port = 3000): string {
  const blocks = shellBlocks(markdown).filter((block) => block.tag === tag)
  if (blocks.length === 0) throw new Error(`${name} has no block of \`sh ${tag}\``)
  const lines: string[] = []
  // On the document's first line, which is its title.
  lines[0] = `set -Eeuo pipefail; trap 'echo "${name}:$LINENO: this command failed" >&2' ERR; trap 'kill $(jobs -p) 2>/dev/null || true' EXIT; PS4='+ ${name}:$LINENO '; set -x`
  for (const { line, commands } of blocks) {
    for (const [index, command] of commands.entries())
      lines[line - 1 + index] = command
        .replace(/localhost:3000\b/g, `localhost:${port}`)
        .replace('PORT=3000-3001', `PORT=${port}-${port + 1}`)
  }
  return `${Array.from(lines, (line) => line ?? '').join('\n')}\n`
}

/**
 * Runs the blocks of one tag. @param options.env and cwd of the commands.
 * @returns the exit code and the combined output, which is also shown as it arrives unless `quiet`.
 */
export async function runCommands(
  file: string,
  tag: Tag,
  options: { env?: NodeJS.ProcessEnv; cwd?: string; quiet?: boolean } = {},
): Promise<{ code: number; output: string }> {
  const { env = process.env, cwd, quiet = false } = options
  const dir = mkdtempSync(join(tmpdir(), 'berth-docs-'))
  try {
    const script = join(dir, basename(file))
    writeFileSync(
      script,
      scriptOf(readFileSync(file, 'utf8'), basename(file), tag, Number(env.PORT) || undefined),
    )
    // A rejected request is a command that fails.
    writeFileSync(join(dir, '.curlrc'), 'fail-with-body\nno-progress-meter\n')
    const shell = spawn('bash', [script], {
      env: { ...env, CURL_HOME: dir },
      cwd,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let output = ''
    for (const stream of [shell.stdout, shell.stderr]) {
      stream.on('data', (chunk) => {
        output += chunk
        if (!quiet) process.stdout.write(chunk)
      })
    }
    const code = await new Promise<number>((resolve, reject) =>
      shell.once('error', reject).once('close', (status) => resolve(status ?? 1)),
    )
    return { code, output }
  } finally {
    rmSync(dir, { recursive: true })
  }
}

if (import.meta.main) {
  const [file = '', tag = ''] = process.argv.slice(2)
  if (!(tag in TAGS)) throw new Error(`usage: docs-commands.ts <file> ${Object.keys(TAGS).join(' | ')}`)
  process.exitCode = (await runCommands(file, tag as Tag)).code
}
