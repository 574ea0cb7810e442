/** `berth gc`, and the worker's own garbage collection: deleting files frees space, with both drivers. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, it } from 'node:test'
import { until } from '../support/processes.ts'
import { readMetrics, runCli, stackKind, startStack } from '../support/stack.ts'
import { openContext } from './context.ts'
import { file, upload } from './upload-form.ts'

const MIB = 2 ** 20
const isReal = stackKind === 'real'

describe('garbage', async () => {
  const berth = await startStack({
    database: 'of the run',
    env: { BERTH_OWN_KUBO: 'public,private', BERTH_INTERVALS: 'gcGrace=1' },
  })
  const { env, workspace } = await openContext(berth)
  const { api } = await workspace()
  /** Metrics have no values from a database that responds slowly. */
  const metric = (name: string) =>
    until(`the metric ${name} exists`, async () => {
      const text = await (await readMetrics(env, 'web')).text()
      const [, figure] = text.match(new RegExp(`^${name}\\{network="public"\\} (\\S+)$`, 'm')) ?? []
      return figure === undefined ? undefined : Number(figure)
    })
  /** The output lines of `berth gc` by network. */
  const gc = async (...args: string[]) => {
    const lines = (await berth.berth('gc', ...args)).split('\n')
    const lineOf = (network: string) => lines.find((line) => line.includes(` ${network} `)) ?? ''
    return { public: lineOf('public'), private: lineOf('private') }
  }
  /** Uploads and deletes a file; its content is released afterwards. */
  const release = async (mebibytes: number) => {
    const { id } = await upload(api, ['network', 'public'], file(randomBytes(mebibytes * MIB), 'a.bin'))
    const deleted = await api.delete(`/v3/files/public/${id}`)
    assert.equal((await api.finished(deleted.headers.get('operation-id') ?? '')).state, 'succeeded')
  }

  it('a new Berth collects garbage once at its start', async () => {
    await until('garbage is collected', async () => (await metric('berth_gc_runs_total')) === 1)
  })
  it('--dry-run reports garbage and removes nothing', async () => {
    await release(5)
    for (let times = 0; times < 2; times++)
      await until('all of it counts', async () =>
        /^✔ public {3}would free 5\.\d MiB: \d blocks that nothing keeps; \d+ blocks? stays?, in \d\.\d s$/.test(
          (await gc('--dry-run')).public,
        ),
      )
  })
  it('berth gc collects garbage, and metrics report what it freed', async () => {
    const { public: freed, private: nothing } = await gc()
    assert.match(freed, /^✔ public {3}freed [45]\.\d MiB: \d blocks that nothing keeps/)
    assert.match(nothing, /^✔ private {2}nothing to free/)
    assert.match((await gc('--dry-run')).public, /^✔ public {3}nothing to free/)
    assert.ok((await metric('berth_gc_removed_bytes_total')) > 4 * MIB)
    assert.ok((await metric('berth_gc_removed_blocks_total')) >= 5)
    assert.equal(await metric('berth_gc_runs_total'), 2)
  })
  it("berth gc leaves a Kubo alone that is not marked as Berth's own", {
    skip: !isReal && "the embedded node is Berth's own",
  }, async () => {
    const { code, stdout } = await runCli({ ...env, BERTH_OWN_KUBO: '' }, 'gc')
    assert.equal(code, 0)
    assert.match(stdout, /^! public {3}left alone: its Kubo is not called Berth's own \(BERTH_OWN_KUBO\)/)
  })
})
