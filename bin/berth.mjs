#!/usr/bin/env node
import { existsSync } from 'node:fs'
import { enableCompileCache } from 'node:module'
import { join } from 'node:path'

// It must be fast, so it runs before everything else is loaded.
if (process.argv[2] === 'health' && !process.argv.includes('--help')) await import('./health.mjs')
else {
  // The cache of the roles: without it, each command first strips the types of the whole program.
  const dataDir = process.env.BERTH_DATA_DIR || '.berth'
  if (existsSync(dataDir)) enableCompileCache(join(dataDir, 'cache'))

  await import('../src/cli/main.ts')
}
