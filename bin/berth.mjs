#!/usr/bin/env node
import { existsSync } from 'node:fs'
import { enableCompileCache } from 'node:module'
import { join } from 'node:path'

// The cache of the roles: without it each command strips the types of the whole program first.
const dataDir = process.env.BERTH_DATA_DIR || '.berth'
if (existsSync(dataDir)) enableCompileCache(join(dataDir, 'cache'))

await import('../src/cli/main.ts')
