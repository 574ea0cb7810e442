/** SIGKILL of the working process at each point of a pin (`src/lib/crash-point.ts`). */
import { existsSync } from 'node:fs'
import { after, before, describe } from 'node:test'
import type { CrashPoint } from '../../src/lib/crash-point.ts'
import { until } from '../support/processes.ts'
import { type Source, startSource } from './content.ts'
import { holdLastLeaves } from './held.ts'
import { assertSettled, type Reason } from './invariants.ts'
import { Ledger } from './ledger.ts'
import { placesOf, Random, replay } from './seed.ts'
import type { Tenant } from './subject.ts'
import { tortureTest } from './suite.ts'
import { note, printSummary } from './summary.ts'
import { contentBackends, World } from './world.ts'

/** Where each point is, in the order in which a pin passes them. The dispatcher is a part of web. */
const POINTS: { point: CrashPoint; owner: 'web' | 'worker' }[] = [
  { point: 'before-commit', owner: 'web' },
  { point: 'after-commit', owner: 'web' },
  { point: 'after-dispatch', owner: 'web' },
  { point: 'after-claim', owner: 'worker' },
  { point: 'mid-retrieval', owner: 'worker' },
  { point: 'after-pin', owner: 'worker' },
  { point: 'before-final-write', owner: 'worker' },
]
/**
 * A dispatcher that dies between its row and the queue leaves a job that was never queued; a worker leaves its lease.
 */
const EXPLAINED: Reason[] = ['job lost by the queue', 'lease expired']

for (const backend of contentBackends) {
  describe(`a pin whose process is killed, on ${backend} (${replay})`, () => {
    const random = new Random(`crash points ${backend}`)
    let world: World
    let ledger: Ledger
    let tenants: Tenant[]
    before(async () => {
      world = await World.start(backend)
      ledger = new Ledger(world)
      tenants = [await world.createTenant('one'), await world.createTenant('two')]
    })
    after(async () => {
      await world?.stop()
      printSummary()
    })

    const torture = (name: string, test: () => Promise<void>) => tortureTest(name, () => world.output(), test)
    /** Sends each content for both workspaces at once: four pins of two CIDs. */
    const sendAll = (source: Source) => {
      const requests = source.contents.flatMap((content) =>
        tenants.map((tenant) => ledger.write(tenant, content, [source.provider.multiaddr])),
      )
      return Promise.all(requests.map((request) => ledger.send(request)))
    }

    for (const { point, owner } of placesOf(`pins ${backend}`, POINTS)) {
      for (const victims of point === 'mid-retrieval' ? [owner, 'worker and web'] : [owner]) {
        torture(`a pin resumes after a SIGKILL of ${victims} at ${point}`, async () => {
          const role = owner === 'web' ? world.web : (world.workers[0] as (typeof world.roles)[number])
          const source = await startSource(random, 2)
          try {
            const mark = await world.arm(role, point)
            const held = point === 'mid-retrieval' ? await holdLastLeaves(source) : () => {}
            const sent = sendAll(source)
            await until('the crash', () => existsSync(mark))
            const crashed = performance.now()
            if (victims === 'worker and web') world.web.kill()
            held()
            await sent
            await ledger.settle()
            note(`${point}: all pinned again`, victims, backend, performance.now() - crashed)
            await assertSettled(world, ledger, { explained: EXPLAINED })
          } finally {
            await source.provider.stop()
          }
        })
      }
    }
  })
}
