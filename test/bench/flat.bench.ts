/** Peak memory of the web role while a file is uploaded and downloaded: 2 GB compared with 10 MB. */
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type StackKind, startStack } from '../support/stack.ts'
import { peakBytes, resetPeak } from './support/process-use.ts'
import { print, type Result } from './support/report.ts'
import { createClient, fill } from './support/transfer.ts'

export const title = 'Memory of the web role: 2 GB against 10 MB'

const SMALL = 10_000_000
const LARGE = 2_000_000_000
/** Small files first, until the process has what it needs anyway. */
const WARM_UP = 5

export async function bench(): Promise<Result[]> {
  return [...(await benchStack('embedded')), ...(await benchStack('real'))]
}

async function benchStack(kind: StackKind): Promise<Result[]> {
  await using ending = new AsyncDisposableStack()
  const stack = await startStack({ kind })
  ending.defer(() => stack.stop())
  const client = await createClient(stack)
  const path = join(tmpdir(), `berth-bench-${process.pid}`)
  ending.defer(() => rm(path, { force: true }))
  const web = await stack.pidOf('web')

  const measure = async (bytes: number) => {
    await fill(path, bytes)
    await resetPeak(web)
    const cid = await client.upload(path, 'public')
    const up = await peakBytes(web)
    await resetPeak(web)
    const { bytes: received } = await client.download(cid)
    if (received !== bytes) throw new Error(`${received} bytes came back, not ${bytes}`)
    return { up, down: await peakBytes(web) }
  }
  for (let i = 0; i < WARM_UP; i++) await measure(SMALL)
  const small = await measure(SMALL)
  const large = await measure(LARGE)
  const on = kind === 'real' ? 'on Kubo' : 'embedded'
  return (['up', 'down'] as const).map((way) => ({
    what: `${way === 'up' ? 'upload' : 'download'}, ${on}`,
    berth: megabytes(large[way]),
    bare: megabytes(small[way]),
    ratio: large[way] / small[way],
    goal: { atMost: 1.5 },
  }))
}

const megabytes = (bytes: number) => `${(bytes / 1e6).toFixed(0)} MB`

if (import.meta.main) print(title, await bench())
