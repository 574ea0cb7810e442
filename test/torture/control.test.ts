/**
 * No fault at all: many pins, deletions and cancellations of the same contents in two workspaces, and a rolling restart
 * in good order. The reconciler, which compares all the time, must have nothing to repair.
 */
import { after, before, describe } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { type Source, startSource } from './content.ts'
import { assertSettled } from './invariants.ts'
import { Ledger, type PinRequest } from './ledger.ts'
import { Random, replay } from './seed.ts'
import type { Tenant } from './subject.ts'
import { tortureTest } from './suite.ts'
import { backends, World } from './world.ts'

const REQUESTS = 120
const CONTENTS = 30
/** With shorter pauses, the workers keep two processors busy, and lose leases if other programs run there too. */
const PAUSE_MS = 120

for (const backend of backends) {
  describe(`a run without faults, queue on ${backend} (${replay})`, () => {
    const random = new Random(`control ${backend}`)
    let world: World
    let ledger: Ledger
    let tenants: Tenant[]
    let source: Source
    before(async () => {
      world = await World.start(backend, { workers: 2, env: { BERTH_INTERVALS: 'reconcile=0.1' } })
      ledger = new Ledger(world)
      tenants = [await world.createTenant('one'), await world.createTenant('two')]
      source = await startSource(random, CONTENTS)
    })
    after(async () => {
      await source?.provider.stop()
      await world?.stop()
    })

    /** Pins contents, and sometimes withdraws what was pinned a moment ago or is being pinned. */
    const load = async () => {
      const going: Promise<void>[] = []
      for (let i = 0; i < REQUESTS; i++) {
        const request = ledger.write(random.pick(tenants), random.pick(source.contents), [
          source.provider.multiaddr,
        ])
        going.push(
          ledger.insist(request).then(() => withdraw(request, random.next(), random.between(0, 400))),
        )
        await delay(random.between(0, PAUSE_MS))
      }
      await Promise.all(going)
    }
    const withdraw = async (request: PinRequest, chance: number, afterMs: number) => {
      if (chance > 0.6) return
      await delay(afterMs)
      if (chance < 0.4) await ledger.remove(request)
      else await ledger.cancel(request)
    }

    tortureTest(
      'a run without faults repairs nothing',
      () => world.output(),
      async () => {
        await load()
        await ledger.settle()
        await assertSettled(world, ledger, { explained: [] })
      },
    )

    tortureTest(
      'a run without faults repairs nothing while processes are restarted in good order',
      () => world.output(),
      async () => {
        const loading = load()
        for (const role of [...world.workers, world.web]) {
          await delay(random.between(200, 600))
          await role.restart()
        }
        await world.ready()
        await loading
        await ledger.settle()
        await assertSettled(world, ledger, { explained: [], restarted: true })
      },
    )
  })
}
