/** Runs a demo: reads its options, ends it, and removes what it created. */
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { stopWithNpm } from '../../bin/npm-parent.mjs'
import { type RealParts, startRealParts } from './real-parts.ts'
import { Screen } from './screen.ts'

export interface Demo {
  screen: Screen
  /** Its resources are disposed of in reverse order when the demo is over, whatever the outcome. */
  stack: AsyncDisposableStack
  /** Aborted by Ctrl-C, and when the demo takes too long. */
  signal: AbortSignal
  /** A folder for everything that the demo and the parts of `--real` store. */
  temp: string
  /** With `--real`: PostgreSQL, Redis and Kubo of this machine. */
  parts: RealParts | undefined
  /** With `--runtime`: where agents run. */
  runtime: string | undefined
}

/**
 * Runs a demo, cleans up after it, and exits: with code 0 only if all of it succeeded.
 * @param options.title gets the suffix `, on Kubo, Redis and PostgreSQL` with `--real`.
 */
export async function runDemo(
  options: { title: string; limitMs: number },
  demo: (demo: Demo) => Promise<void>,
): Promise<never> {
  const { values } = parseArgs({
    options: { real: { type: 'boolean', default: false }, runtime: { type: 'string' } },
  })
  const interrupted = new AbortController()
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.on(name, () => interrupted.abort(new Error('interrupted')))
  stopWithNpm('demo')
  const signal = AbortSignal.any([interrupted.signal, AbortSignal.timeout(options.limitMs)])
  const screen = new Screen(signal)
  const stack = new AsyncDisposableStack()
  let code = 0
  try {
    const temp = await makeTemporaryFolder(stack)
    screen.title(`${options.title}${values.real ? ', on Kubo, Redis and PostgreSQL' : ''}`)
    const parts = values.real
      ? await screen.step('Parts', async () => {
          const parts = await startRealParts(stack, signal)
          return [parts, parts.versions.join(', ')]
        })
      : undefined
    await demo({ screen, stack, signal, temp, parts, runtime: values.runtime })
  } catch (error) {
    screen.failed(interrupted.signal.aborted ? 'Interrupted' : error)
    code = interrupted.signal.aborted ? 130 : 1
  }
  const cleaner = new Screen()
  await cleaner
    .step('Clean-up', async () => [await stack.disposeAsync(), 'everything is stopped and removed'])
    .catch((error) => {
      cleaner.failed(error)
      code ||= 1
    })
  screen.close()
  // The waits of an interrupted step would keep the process alive.
  process.exit(code)
}

/** PostgreSQL's user must be able to pass through it. */
async function makeTemporaryFolder(stack: AsyncDisposableStack): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'berth-demo-'))
  stack.defer(() => rm(path, { recursive: true, force: true }))
  await chmod(path, 0o711)
  process.env.TMPDIR = path
  return path
}
