/** A worker is killed in the middle of a retrieval while another one runs, which takes over the operation. */
import { after, before, describe } from 'node:test'
import { startSource } from './content.ts'
import { holdLastLeaves } from './held.ts'
import { assertSettled } from './invariants.ts'
import { Ledger } from './ledger.ts'
import { Random, replay } from './seed.ts'
import { tortureTest } from './suite.ts'
import { note, printSummary } from './summary.ts'
import { measureTakeover, retrieving } from './takeover.ts'
import { backends, World } from './world.ts'

const ROUNDS = 2

for (const backend of backends) {
  describe(`an operation whose worker is killed, queue on ${backend} (${replay})`, () => {
    const random = new Random(`takeover ${backend}`)
    let world: World
    before(async () => {
      world = await World.start(backend)
    })
    after(async () => {
      await world?.stop()
      printSummary()
    })

    tortureTest(
      'an operation whose worker is killed resumes on another worker',
      () => world.output(),
      async () => {
        const ledger = new Ledger(world)
        const tenant = await world.createTenant('one')
        const query = world.query.bind(world)
        for (let round = 0; round < ROUNDS; round++) {
          const source = await startSource(random, 1)
          try {
            const release = await holdLastLeaves(source)
            const [content] = source.contents
            if (!content) throw new Error('no content')
            const request = ledger.write(tenant, content, [source.provider.multiaddr])
            await ledger.insist(request)
            const operationId = request.operationId as string
            await retrieving(query, operationId)
            // Started after the claim, so that the only other worker is the one that has it.
            const [victim] = world.workers
            await world.addWorker()
            const ms = await measureTakeover(query, operationId, () => victim?.kill())
            note('mid-retrieval: goes on', 'worker, another runs', backend, ms)
            release()
            await ledger.settle()
            await victim?.stop()
            world.roles.splice(world.roles.indexOf(victim as (typeof world.roles)[number]), 1)
          } finally {
            await source.provider.stop()
          }
        }
        await assertSettled(world, ledger, { explained: ['lease expired'] })
      },
    )
  })
}
