/**
 * Starts one Berth, and one PostgreSQL server for the tests' own databases, for all files of a run: `node --test
 * --test-global-setup=test/contract/setup.ts …`. A file that runs without it starts its own.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { DATABASE_SERVER, type DatabaseServer, startDatabaseServer } from '../support/database-server.ts'
import type { Stack } from '../support/stack.ts'
import { findLogged, TOKEN_RECORD } from '../support/token-record.ts'
import { createSharedKey, SHARED, startShared } from './context.ts'

let databases: DatabaseServer | undefined
let stack: Stack | undefined
let dir: string | undefined

export async function globalSetup(): Promise<void> {
  // Without it, each of about a hundred processes would strip the types of its modules again, which takes half a
  // second.
  process.env.NODE_COMPILE_CACHE ??= join(
    process.env.XDG_CACHE_HOME || join(homedir(), '.cache'),
    'berth/node',
  )
  dir = await mkdtemp(join(tmpdir(), 'berth-tokens-'))
  process.env[TOKEN_RECORD] = join(dir, 'tokens')
  ;[databases, stack] = await Promise.all([startDatabaseServer(), startShared({ LOG_LEVEL: 'debug' })])
  process.env[DATABASE_SERVER] = databases.url
  process.env[SHARED] = JSON.stringify({ url: stack.url, env: stack.env, key: await createSharedKey(stack) })
}

/** Differs from the runner's code for failing tests, so that a second try of those cannot hide it. */
const TEARDOWN_FAILED = 2

/**
 * Fails the run if the log of the tests' Berth contains a token that the tests created. It does not throw, because Node
 * would call it again and again.
 */
export async function globalTeardown(): Promise<void> {
  try {
    await stack?.stop()
    await databases?.stop()
    const { tokens, lines } = await findLogged(process.env[TOKEN_RECORD] ?? '', stack?.output() ?? '')
    await rm(dir ?? '', { recursive: true, force: true })
    console.log(`searched the log for ${tokens} tokens and secrets of the tests`)
    if (lines.length === 0) return
    console.log(`✖ ${lines.length} lines of the log contain some of them:`)
    for (const line of lines.slice(0, 10)) console.log(line.slice(0, 2000))
  } catch (error) {
    console.log('✖ the shared Berth of the tests does not stop:', error)
  }
  process.exitCode = TEARDOWN_FAILED
}
