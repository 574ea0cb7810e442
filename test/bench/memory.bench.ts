/** Memory at rest of each role, against a Node.js process that has loaded Express and does nothing. */
import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { run } from '../support/processes.ts'
import { type StackKind, startStack } from '../support/stack.ts'
import { print, type Result } from './support/report.ts'

export const title = 'Memory at rest'

const BARE = `import 'express'; setInterval(() => {}, 1e9)`
/** At rest is a process whose memory has changed by less than this share in the time of the samples. */
const STABLE = 0.01
const SAMPLES = 8
const SAMPLE_MS = 500
const LIMIT_MS = 40_000

export async function bench(): Promise<Result[]> {
  await using ending = new AsyncDisposableStack()
  const bare = run(process.execPath, ['--input-type=module', '-e', BARE])
  ending.defer(() => bare.end())
  const bareBytes = await atRest(bare.process.pid ?? 0)

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
  return results
}

async function measureStack(kind: StackKind): Promise<{ role: string; bytes: number }[]> {
  await using ending = new AsyncDisposableStack()
  const stack = await startStack({ kind })
  ending.defer(() => stack.stop())
  const running: { pid: number }[] = JSON.parse(await readFile(join(stack.dataDir, 'roles.json'), 'utf8'))
  // Awaited here: the stack is stopped when this function is left.
  return await Promise.all(
    running.map(async ({ pid }) => ({ role: await roleOf(pid), bytes: await atRest(pid) })),
  )
}

/** Resident bytes of a process once they stay the same, or as they are after 40 s. */
async function atRest(pid: number): Promise<number> {
  const deadline = performance.now() + LIMIT_MS
  const samples: number[] = []
  for (;;) {
    samples.push(1024 * Number(await ps(pid, 'rss')))
    const recent = samples.slice(-SAMPLES)
    const spread = Math.max(...recent) - Math.min(...recent)
    const stable = recent.length === SAMPLES && spread < STABLE * Math.max(...recent)
    if (stable || performance.now() > deadline) return recent.at(-1) ?? 0
    await delay(SAMPLE_MS)
  }
}

/** `main.ts <role>` is how a role is started. */
const roleOf = async (pid: number) => (await ps(pid, 'args')).split(' ').at(-1) ?? ''

async function ps(pid: number, column: 'rss' | 'args'): Promise<string> {
  const { stdout } = await promisify(execFile)('ps', ['-ww', '-o', `${column}=`, '-p', String(pid)])
  return stdout.trim()
}

const megabytes = (bytes: number) => `${(bytes / 1e6).toFixed(0)} MB`

if (import.meta.main) print(title, await bench())
