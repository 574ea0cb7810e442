/**
 * Keeps the last lines of the log in the agent's home for the next agentd, because a restart recreates the container.
 */
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isObject } from './json.ts'
import type { Log } from './logs.ts'
import type { Paths } from './paths.ts'
import { readPlainFile } from './plain-file.ts'
import type { LogLine } from './protocol.ts'

const LINES = 100
const BYTES = 4_194_304
const LEVELS = ['TRACE', 'DEBUG', 'INFO', 'WARN', 'ERROR', 'FATAL']

const fileOf = ({ home }: Paths) => join(home, '.agentd-log.json')

/** If this fails, the next agentd starts with an empty log. */
export async function keepLog(paths: Paths, log: Log): Promise<void> {
  const file = fileOf(paths)
  // The agent may have put a link there.
  await rm(file, { recursive: true, force: true }).catch(() => {})
  await writeFile(file, JSON.stringify(log.lines(LINES)), { flag: 'wx', mode: 0o600 }).catch(() => {})
}

/** Takes over the previous agentd's lines, once. Skips invalid lines, because the agent can write to the file. */
export async function takeOverLog(paths: Paths, log: Log): Promise<void> {
  const file = fileOf(paths)
  try {
    const lines: unknown = JSON.parse((await readPlainFile(file, BYTES)) ?? '[]')
    if (Array.isArray(lines)) for (const line of lines.filter(isLine).slice(-LINES)) log.add(line)
  } catch {
    // The file is not a readable log.
  }
  await rm(file, { recursive: true, force: true }).catch(() => {})
}

function isLine(line: unknown): line is LogLine {
  if (!isObject(line)) return false
  const { timestamp, level, source, message } = line
  return (
    [timestamp, source, message].every((text) => typeof text === 'string') &&
    LEVELS.includes(String(level)) &&
    String(timestamp).length <= 40 &&
    String(source).length <= 200
  )
}
