/** `berth gc`, and what the worker collects by itself: deleting frees space, on both drivers. */
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
    env: { BERTH_OWN_KUBO: 'public,private', BERTH_GC_GRACE_SECONDS: '1' },
  })
  const { env, workspace } = await openContext(berth)
  const { api } = await workspace()
  /** Metrics have no figures of a database that is slow to answer. */
  const metric = (name: string) =>
    until(`there is ${name}`, async () => {
      const text = await (await readMetrics(env, 'web')).text()
      const [, figure] = text.match(new RegExp(`^${name}\\{network="public"\\} (\\S+)$`, 'm')) ?? []
      return figure === undefined ? undefined : Number(figure)
    })
  /** The lines of `berth gc` by network. */
  const gc = async (...args: string[]) => {
    const lines = (await berth.berth('gc', ...args)).split('\n')
    const lineOf = (network: string) => lines.find((line) => line.includes(` ${network} `)) ?? ''
    return { public: lineOf('public'), private: lineOf('private') }
  }
  /** Uploads and deletes a file; its content is released then. */
  const release = async (mebibytes: number) => {
    const { id } = await upload(api, ['network', 'public'], file(randomBytes(mebibytes * MIB), 'a.bin'))
    const deleted = await api.delete(`/v3/files/public/${id}`)
    assert.equal((await api.finished(deleted.headers.get('operation-id') ?? '')).state, 'succeeded')
  }

  it('garbage of a new Berth is collected once at its start', async () => {
    await until('it is collected', async () => (await metric('berth_gc_runs_total')) === 1)
  })
  it('garbage is told by --dry-run, which removes none', async () => {
    await release(5)
    for (let times = 0; times < 2; times++)
      await until('all of it counts', async () =>
        /^✔ public {3}would free 5\.\d MiB: \d blocks that nothing keeps; \d+ blocks? stays?, in \d\.\d s$/.test(
          (await gc('--dry-run')).public,
        ),
      )
  })
  it('garbage is collected by berth gc, and metrics have what that freed', async () => {
    const { public: freed, private: nothing } = await gc()
    assert.match(freed, /^✔ public {3}freed [45]\.\d MiB: \d blocks that nothing keeps/)
    assert.match(nothing, /^✔ private {2}nothing to free/)
    assert.match((await gc('--dry-run')).public, /^✔ public {3}nothing to free/)
    assert.ok((await metric('berth_gc_removed_bytes_total')) > 4 * MIB)
    assert.ok((await metric('berth_gc_removed_blocks_total')) >= 5)
    assert.equal(await metric('berth_gc_runs_total'), 2)
  })
  it('garbage in a Kubo that is not called Berth’s own is left alone', {
    skip: !isReal && 'the embedded node is',
  }, async () => {
    const { code, stdout } = await runCli({ ...env, BERTH_OWN_KUBO: '' }, 'gc')
    assert.equal(code, 0)
    assert.match(stdout, /^! public {3}left alone: its Kubo is not called Berth's own \(BERTH_OWN_KUBO\)/)
  })
})
