/** After the first `npm start` on a machine, no running process has loaded the type stripper, which takes 12 MB. */
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { it } from 'node:test'
import { useFolder } from '../../support/folder.ts'
import { startStack } from '../../support/stack.ts'

/** JavaScript, because the observed processes load it. */
const RECORDER = `
  import { writeFileSync } from 'node:fs'
  process.on('exit', () =>
    writeFileSync(process.env.BERTH_TEST_MODULES + '/' + process.argv[2], process.moduleLoadList.join('\\n')))`

it('the supervisor and the roles of the first npm start use compiled code', async (t) => {
  const folder = await useFolder('berth-modules-', t)
  const stack = await startStack({
    kind: 'embedded',
    database: 'of the run',
    env: {
      NODE_COMPILE_CACHE: '',
      NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(RECORDER)}`,
      BERTH_TEST_MODULES: folder,
    },
  })
  await stack.stop()
  for (const role of ['start', 'web', 'worker', 'agent-proxy'])
    assert.doesNotMatch(await readFile(join(folder, role), 'utf8'), /amaro/, role)
  assert.match(
    await readFile(join(folder, 'compile'), 'utf8'),
    /amaro/,
    'a process that strips types is reported',
  )
})
