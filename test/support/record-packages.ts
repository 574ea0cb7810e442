/**
 * For `node --import`: writes the name of each package that the process loads, one per line, to
 * `<BERTH_TEST_PACKAGES>/<role>`.
 */
import { appendFileSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { join } from 'node:path'

const folder = process.env.BERTH_TEST_PACKAGES
const role = process.argv[2]
const seen = new Set<string>()

if (folder && role)
  registerHooks({
    load(url, context, load) {
      const name = /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url)?.[1]
      if (name && !seen.has(name)) {
        seen.add(name)
        appendFileSync(join(folder, role), `${name}\n`)
      }
      return load(url, context)
    },
  })
