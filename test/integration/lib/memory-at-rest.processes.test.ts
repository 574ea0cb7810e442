import assert from 'node:assert/strict'
import { join } from 'node:path'
import { it } from 'node:test'
import { run, until } from '../../support/processes.ts'

for (const what of ['objects', 'buffers'])
  it(`a process at rest releases the memory of a burst of work, which was in ${what}`, async (t) => {
    const program = run(process.execPath, [join(import.meta.dirname, 'at-rest.program.ts'), what])
    t.after(() => program.end())
    const read = () => program.output().trim().split('\n').map(Number.parseFloat)
    const [peak = 0] = await until('it has memory', () => Number.isFinite(read()[0]) && read())
    await until('the memory is released', () => (read().at(-1) ?? peak) < peak - 50e6, 30_000)
    assert.equal(program.process.exitCode, null)
  })
