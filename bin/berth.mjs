#!/usr/bin/env node
import { existsSync } from 'node:fs'
import { enableCompileCache } from 'node:module'
import { join } from 'node:path'
import operator from './operator-commands.json' with { type: 'json' }

const [first, second] = process.argv.slice(2)
const name = first === 'help' ? second : first

// It must be fast, so it runs before everything else is loaded.
if (name === 'health' && !process.argv.includes('--help') && first !== 'help') await import('./health.mjs')
else if (Object.hasOwn(operator, name ?? '')) {
  // The cache of the roles: without it, each command first strips the types of the whole program.
  const dataDir = process.env.BERTH_DATA_DIR || '.berth'
  if (existsSync(dataDir)) enableCompileCache(join(dataDir, 'cache'))

  await import('../src/cli/main.ts')
}
// Users' commands call any Berth, and load nothing of the server.
else await import('../clients/cli/dist/berth.mjs')
