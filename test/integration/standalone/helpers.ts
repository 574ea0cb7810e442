import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { after, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import type { RunAs } from '../../../src/lib/process/system-user.ts'
import { createLogger } from '../../../src/log.ts'
import { type EmbeddedPostgres, startPostgres } from '../../../src/standalone/postgres.ts'

export const log = createLogger('test', 'silent')

const folders: string[] = []
after(async () => {
  for (const folder of folders) await rm(folder, { recursive: true, force: true, maxRetries: 10 })
})

/** A new folder that the server's user can enter; removed after the file's tests. */
export async function newFolder(mode = 0o711): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-test-'))
  await chmod(folder, mode)
  folders.push(folder)
  return folder
}

/** Removes a folder after the file's tests. */
export const removeLater = (folder: string) => void folders.push(folder)

/** Starts PostgreSQL, and stops it after the test. */
export async function start(t: TestContext, dataDir: string): Promise<EmbeddedPostgres> {
  const postgres = await startPostgres({ dataDir, log })
  t.after(() => postgres.stop())
  return postgres
}

/** Rows of one statement on a new connection. */
export async function query(
  url: string,
  text: string,
  values: unknown[] = [],
): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 60_000 })
  client.on('error', () => {})
  await client.connect()
  try {
    return (await client.query(text, values)).rows
  } finally {
    await client.end()
  }
}

/** Waits until `probe` returns something other than null, false or undefined, and returns that. */
export async function eventually<T>(
  probe: () => Promise<T> | T,
  what: string,
  ms = 60_000,
): Promise<NonNullable<Exclude<T, false>>> {
  const deadline = performance.now() + ms
  for (;;) {
    const value = await probe()
    if (value !== null && value !== undefined && value !== false) return value as never
    assert.ok(performance.now() < deadline, `did not happen within ${ms} ms: ${what}`)
    await sleep(10)
  }
}

export interface Program {
  child: ChildProcess
  /** The first line on standard output, parsed. Rejects with standard error if the process ends without a line. */
  line: Promise<Record<string, unknown>>
  ended: Promise<{ code: number | null; stderr: string }>
}

/** Starts a program from this folder (or at `path`) with Node, and ends it after the test. */
export function runProgram(t: TestContext, path: string, args: string[], as: RunAs = {}): Program {
  const file = path.startsWith('/') ? path : fileURLToPath(new URL(path, import.meta.url))
  const child = spawn(process.execPath, [file, ...args], {
    ...as,
    cwd: '/',
    stdio: ['pipe', 'pipe', 'pipe'],
    detached: true,
  })
  let stderr = ''
  child.stderr.on('data', (data) => {
    stderr += data
  })
  const ended = new Promise<{ code: number | null; stderr: string }>((resolve) => {
    child.once('close', (code) => resolve({ code, stderr }))
  })
  const line = new Promise<Record<string, unknown>>((resolve, reject) => {
    createInterface({ input: child.stdout }).once('line', (text) => resolve(JSON.parse(text)))
    void ended.then(({ stderr }) => reject(new Error(stderr)))
  })
  line.catch(() => {})
  t.after(async () => {
    child.kill('SIGKILL')
    await ended
  })
  return { child, line, ended }
}
