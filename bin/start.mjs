// `npm start`. This is plain JavaScript, and loads nothing with types before it is in Node's cache of compiled code:
// otherwise the supervisor and each role would keep the type stripper in memory, which takes 12 MB.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync } from 'node:fs'
import { enableCompileCache } from 'node:module'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import berth from '../package.json' with { type: 'json' }
import { stopWithNpm } from './npm-parent.mjs'

stopWithNpm('start')

const main = fileURLToPath(new URL('../src/main.ts', import.meta.url))
const dataDir = process.env.BERTH_DATA_DIR || '.berth'
process.env.NODE_COMPILE_CACHE ||= resolve(dataDir, 'cache')
const cache = process.env.NODE_COMPILE_CACHE
try {
  mkdirSync(dataDir, { recursive: true, mode: 0o711 })
  if (!existsSync(join(cache, `berth-${berth.version}`)))
    spawnSync(process.execPath, [main, 'compile'], { stdio: 'ignore' })
} catch {
  // The next step reports an unusable data folder by name.
}
enableCompileCache(cache)
await import(main)
