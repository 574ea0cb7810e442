/** Everything that the queue knows is lost, twice, while many pins wait and run. */
import { after, before, describe } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { until } from '../support/processes.ts'
import { type Source, startSource } from './content.ts'
import { assertSettled } from './invariants.ts'
import { Ledger } from './ledger.ts'
import { Random, replay } from './seed.ts'
import { tortureTest } from './suite.ts'
import { note, printSummary } from './summary.ts'
import { backends, World } from './world.ts'

const CONTENTS = 60
const FLUSHES = 2

for (const backend of backends) {
  describe(`a queue that loses everything, on ${backend} (${replay})`, () => {
    const random = new Random(`queue loss ${backend}`)
    let world: World
    let source: Source
    before(async () => {
      world = await World.start(backend, { env: { BERTH_CONCURRENCY: 'pins=4' } })
      source = await startSource(random, CONTENTS)
    })
    after(async () => {
      await source?.provider.stop()
      await world?.stop()
      printSummary()
    })

    tortureTest(
      'a queue that loses everything loses no operation',
      () => world.output(),
      async () => {
        const ledger = new Ledger(world)
        const tenants = [await world.createTenant('one'), await world.createTenant('two')]
        source.provider.pace(5)
        const requests = source.contents.flatMap((content) =>
          tenants.map((tenant) => ledger.write(tenant, content, [source.provider.multiaddr])),
        )
        await Promise.all(requests.map((request) => ledger.insist(request)))
        const waiting = async () => {
          const [row] = await world.query<{ queued: number; running: number }>(
            `SELECT count(*) FILTER (WHERE state = 'queued')::int AS queued,
             count(*) FILTER (WHERE state = 'running')::int AS running FROM operation`,
          )
          return row && row.queued > 10 && row.running > 0
        }
        let flushed = 0
        for (let i = 0; i < FLUSHES; i++) {
          await until('pins wait while others run', waiting)
          await delay(random.between(0, 300))
          await world.flushQueue()
          flushed = performance.now()
        }
        await ledger.settle()
        note(
          `${requests.length} pins, queue flushed ${FLUSHES} times: all ended`,
          'queue',
          backend,
          performance.now() - flushed,
        )
        await assertSettled(world, ledger, { explained: ['job lost by the queue'] })
      },
    )
  })
}
