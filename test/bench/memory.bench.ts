/**
 * Memory at rest. Each role is compared with a Node.js process that has loaded Express and does nothing. Memory and
 * processor time of everything that a first `npm start` runs, including PostgreSQL, after uploads, are compared with the
 * allowed maximum.
 */
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { run } from '../support/processes.ts'
import { type StackKind, startStack } from '../support/stack.ts'
import { processorSeconds, proportionalBytes, sumOfTree } from './support/process-use.ts'
import { print, type Result } from './support/report.ts'

export const title = 'Memory at rest'

const BARE = `import 'express'; setInterval(() => {}, 1e9)`
/** A process is at rest if its memory has changed by less than this share during the samples. */
const STABLE = 0.01
const SAMPLES = 8
const SAMPLE_MS = 500
const LIMIT_MS = 40_000
const UPLOADS = 30
const UPLOAD_BYTES = 10_000_000
const CLIENTS = 4
/** The most bytes that all of Berth may use. */
const ALL_BYTES = 300e6
/** The most processor time that all of Berth may use in a minute at rest: 2 % of a processor. */
const ALL_SECONDS = 1.2
const IDLE_MS = 60_000
/** Within this time, idle connections are closed and processes have released their memory. */
const REST_MS = 20_000

export async function bench(): Promise<Result[]> {
  await using ending = new AsyncDisposableStack()
  const bare = run(process.execPath, ['--input-type=module', '-e', BARE])
  ending.defer(() => bare.end())
  const bareBytes = await atRest(() => residentBytes(bare.process.pid ?? 0))

  const results: Result[] = []
  for (const kind of ['embedded', 'real'] as const) {
    for (const { role, bytes } of await measureStack(kind)) {
      const ratio = bytes / bareBytes
      results.push({
        what: `${role}, ${kind} parts`,
        berth: megabytes(bytes),
        bare: megabytes(bareBytes),
        ratio,
      })
    }
  }
  const { bytes, seconds } = await measureAll()
  const all = 'all that npm start runs, after 300 MB of uploads'
  results.push(
    {
      what: all,
      berth: megabytes(bytes),
      bare: megabytes(ALL_BYTES),
      ratio: bytes / ALL_BYTES,
      goal: { atMost: 1 },
    },
    {
      what: `processor time a minute of ${all}`,
      berth: `${seconds.toFixed(2)} s`,
      bare: `${ALL_SECONDS} s`,
      ratio: seconds / ALL_SECONDS,
      goal: { atMost: 1 },
    },
  )
  return results
}

/**
 * Proportional bytes of the supervisor and everything that it has started, on a machine where it never ran, and their
 * processor time in a minute.
 */
async function measureAll(): Promise<{ bytes: number; seconds: number }> {
  await using ending = new AsyncDisposableStack()
  const stack = await startStack({ kind: 'embedded', env: { NODE_COMPILE_CACHE: '' } })
  ending.defer(() => stack.stop())
  const headers = { authorization: `Bearer ${await stack.createKey()}` }
  let next = 0
  const client = async () => {
    while (next++ < UPLOADS) {
      const body = new FormData()
      body.set('network', 'public')
      body.set('file', new Blob([randomBytes(UPLOAD_BYTES)]), 'file')
      const response = await fetch(`${stack.url}/v3/files`, { method: 'POST', headers, body })
      if (!response.ok) throw new Error(`${response.status} ${await response.text()}`)
    }
  }
  await Promise.all(Array.from({ length: CLIENTS }, client))
  await delay(REST_MS)
  const supervisor = Number(await ps(await stack.pidOf('web'), 'ppid'))
  const bytes = await atRest(() => sumOfTree(supervisor, proportionalBytes))
  const before = await sumOfTree(supervisor, processorSeconds)
  await delay(IDLE_MS)
  return { bytes, seconds: (await sumOfTree(supervisor, processorSeconds)) - before }
}

async function measureStack(kind: StackKind): Promise<{ role: string; bytes: number }[]> {
  await using ending = new AsyncDisposableStack()
  const stack = await startStack({ kind })
  ending.defer(() => stack.stop())
  const running: { pid: number }[] = JSON.parse(await readFile(join(stack.dataDir, 'roles.json'), 'utf8'))
  // Awaited here, because the stack is stopped when this function returns.
  return await Promise.all(
    running.map(async ({ pid }) => ({
      role: await roleOf(pid),
      bytes: await atRest(() => residentBytes(pid)),
    })),
  )
}

/** Bytes once they no longer change, or after 40 s. */
async function atRest(read: () => Promise<number>): Promise<number> {
  const deadline = performance.now() + LIMIT_MS
  const samples: number[] = []
  for (;;) {
    samples.push(await read())
    const recent = samples.slice(-SAMPLES)
    const spread = Math.max(...recent) - Math.min(...recent)
    const stable = recent.length === SAMPLES && spread < STABLE * Math.max(...recent)
    if (stable || performance.now() > deadline) return recent.at(-1) ?? 0
    await delay(SAMPLE_MS)
  }
}

const residentBytes = async (pid: number) => 1024 * Number(await ps(pid, 'rss'))

/** A role is started as `main.ts <role>`. */
const roleOf = async (pid: number) => (await ps(pid, 'args')).split(' ').at(-1) ?? ''

async function ps(pid: number, column: 'rss' | 'args' | 'ppid'): Promise<string> {
  const { stdout } = await promisify(execFile)('ps', ['-ww', '-o', `${column}=`, '-p', String(pid)])
  return stdout.trim()
}

const megabytes = (bytes: number) => `${(bytes / 1e6).toFixed(0)} MB`

if (import.meta.main) print(title, await bench())
