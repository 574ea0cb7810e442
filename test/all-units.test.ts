/** The unit tests, which lie beside the code, in one process of `npm test`: one for each takes longer to start than to run. */
import { globSync } from 'node:fs'
import { pathToFileURL } from 'node:url'

for (const path of globSync('{src,workers,agentd}/**/*.test.ts').sort())
  await import(pathToFileURL(path).href)
