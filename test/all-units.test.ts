/** The unit tests, which lie beside the code, in one process of `npm test`: one for each takes longer to start than to run. */
import { globSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

const cwd = join(import.meta.dirname, '..')

for (const path of globSync('{src,workers,agentd}/**/*.test.ts', { cwd }).sort())
  await import(pathToFileURL(join(cwd, path)).href)
