/**
 * Starts one Berth for all the files of a run: `node --test --test-global-setup=test/contract/setup.ts …`.
 * A file that is run without it starts its own.
 */
import type { Stack } from '../support/stack.ts'
import { SHARED, startShared } from './context.ts'

let stack: Stack | undefined

export async function globalSetup(): Promise<void> {
  stack = await startShared()
  process.env[SHARED] = JSON.stringify({ url: stack.url, env: stack.env, key: await stack.createKey() })
}

export async function globalTeardown(): Promise<void> {
  await stack?.stop()
}
