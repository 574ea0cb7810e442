/**
 * How long other tenants wait for a page of a list while 20 clients read a DAG that is costly by design. It is a CAR of
 * at most a megabyte whose nodes link one child thousands of times, or a directory of many names.
 */
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { carOf } from '../integration/storage/cases/blocks.ts'
import { hollowDirectory, hollowFile, type MadeDag } from '../support/hollow.ts'
import { startStack } from '../support/stack.ts'
import { load } from './support/load.ts'
import { median, quantile } from './support/numbers.ts'
import type { Readers } from './support/readers.program.ts'
import { print, type Result } from './support/report.ts'
import { createClient } from './support/transfer.ts'

export const title = 'Other tenants, while 20 clients read what was made to be costly'

const READERS = 20
const REQUESTS = 40
const ROUNDS = 3
const GOAL = { atMost: 3 }

export async function bench(): Promise<Result[]> {
  await using ending = new AsyncDisposableStack()
  const stack = await startStack({ kind: 'embedded' })
  ending.defer(() => stack.stop())
  const { gateway } = await createClient(stack)
  const headers = { authorization: `Bearer ${await stack.createKey()}` }
  const upload = async (dag: MadeDag) => {
    const form = new FormData()
    form.set('network', 'public')
    form.set('car', 'true')
    form.set('file', new Blob([carOf(dag.root, dag.blocks) as Uint8Array<ArrayBuffer>]), 'hollow.car')
    const answer = await fetch(`${stack.url}/v3/files`, { method: 'POST', headers, body: form })
    await answer.body?.cancel()
    return answer.status
  }
  /** The median time of a page in milliseconds. */
  const page = async () => {
    const target = { url: stack.url, method: 'GET', path: () => '/v3/files/public', headers } as const
    return quantile((await load(target, REQUESTS, 1)).latencies, 0.5)
  }

  const directory = await hollowDirectory(20_000, 3)
  const attacks: [what: string, dag: MadeDag, rest?: string][] = [
    ['file, 20,000 wide, 3 deep', await hollowFile(20_000, 3)],
    ['file, 40 wide, 5 deep', await hollowFile(40, 5)],
    ['file, 3,000 wide, 4 deep', await hollowFile(3000, 4)],
    ['file, 120 wide, 2 deep', await hollowFile(120, 2)],
    ['file, 1,000 wide, 2 deep, of 2 KB', await hollowFile(1000, 2, Buffer.alloc(2048))],
    ['file, 1,000 wide, 3 deep, of 1 MB', await hollowFile(1000, 3, Buffer.alloc(1_000_000))],
    ['directory, 20,000 wide, 3 deep', directory, '/'],
    ['the same, a path in it', directory, '/n019999/n019999/'],
    ['the same as a CAR', directory, '?format=car'],
  ]
  await page()
  const results: Result[] = []
  for (const [what, dag, rest = ''] of attacks) {
    const status = await upload(dag)
    if (status !== 200) {
      results.push({ what, berth: `refused, ${status}` })
      continue
    }
    const workerData: Readers = { ...gateway, paths: [`/ipfs/${dag.root}${rest}`], count: READERS }
    let answers = ''
    const rounds: { calm: number; attacked: number }[] = []
    for (let i = 0; i < ROUNDS; i++) {
      const calm = await page()
      const readers = new Worker(new URL('./support/readers.program.ts', import.meta.url), { workerData })
      const statuses = new Set<number>()
      readers.on('message', (status) => statuses.add(status))
      await once(readers, 'message')
      const attacked = await page()
      await readers.terminate()
      answers = [...statuses].join(', ')
      rounds.push({ calm, attacked })
    }
    const ms = (of: 'calm' | 'attacked') => `${median(rounds.map((round) => round[of])).toFixed(1)} ms`
    const ratio = median(rounds.map(({ calm, attacked }) => attacked / calm))
    results.push({ what, berth: `${ms('attacked')} (${answers})`, bare: ms('calm'), ratio, goal: GOAL })
  }
  return results
}

if (import.meta.main) print(title, await bench())
