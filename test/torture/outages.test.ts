/** PostgreSQL and Kubo go and come back while requests are made throughout. */
import { after, before, describe } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { until } from '../support/processes.ts'
import { type Source, startSource } from './content.ts'
import type { Reason } from './invariants.ts'
import { Load } from './load.ts'
import { placesOf, Random, replay } from './seed.ts'
import { tortureTest } from './suite.ts'
import { printSummary } from './summary.ts'
import { backends, World } from './world.ts'

const CONTENTS = 60
/** While PostgreSQL is away, leases expire, and jobs that were taken find no row to claim. */
const DATABASE_AWAY: Reason[] = ['lease expired', 'job lost by the queue']

for (const backend of backends) {
  describe(`servers that go and come back, queue on ${backend} (${replay})`, () => {
    const random = new Random(`outages ${backend}`)
    let world: World
    let load: Load
    let source: Source
    before(async () => {
      world = await World.start(backend, { ownPostgres: true })
      const tenants = [await world.createTenant('one'), await world.createTenant('two')]
      source = await startSource(random, CONTENTS)
      load = new Load(world, source, random, tenants)
      source.provider.pace(3)
    })
    after(async () => {
      await source?.provider.stop()
      await world?.stop()
      printSummary()
    })

    const underLoad = (what: string, victim: string, strike: () => Promise<void>, explained: Reason[]) =>
      load.with({ what, victim, strike, explained })
    const outages: [name: string, test: () => Promise<void>][] = []
    const outage = (...parts: (typeof outages)[number]) => outages.push(parts)

    outage('a fast restart of PostgreSQL loses nothing', () =>
      underLoad(
        'fast restart',
        'PostgreSQL',
        async () => {
          await world.postgres?.halt()
          await delay(random.between(0, 1500))
          await world.postgres?.restart()
        },
        DATABASE_AWAY,
      ),
    )

    outage('a SIGKILL of PostgreSQL loses nothing', () =>
      underLoad(
        'SIGKILL',
        'PostgreSQL',
        async () => {
          await world.postgres?.kill()
          await delay(random.between(0, 1500))
          await world.postgres?.restart()
        },
        DATABASE_AWAY,
      ),
    )

    if (backend === 'redis') {
      outage('a SIGKILL of Redis loses nothing', () =>
        underLoad(
          'SIGKILL',
          'Redis',
          async () => {
            await world.redis?.kill()
            await delay(random.between(0, 1500))
            await world.redis?.restart()
          },
          DATABASE_AWAY,
        ),
      )

      outage('a SIGKILL of Kubo loses nothing', () =>
        underLoad(
          'SIGKILL',
          'Kubo',
          async () => {
            await world.kubo?.kill()
            await delay(random.between(500, 3000))
            await world.kubo?.restart()
          },
          DATABASE_AWAY,
        ),
      )

      // Deletions that wait for Kubo inside their transactions must not prevent others from renewing their leases.
      outage('a Kubo that hangs under many deletions loses nothing', () =>
        underLoad(
          'hangs for 6 s',
          'Kubo',
          async () => {
            const pinned = await until('many files are pinned', () => {
              const accepted = load.ledger.requests.filter(({ fileId, removed }) => fileId && !removed)
              return accepted.length > 40 && accepted.slice(0, 40)
            })
            await world.kubo?.pause()
            await Promise.all(pinned.map((request) => load.ledger.remove(request)))
            await delay(6000)
            world.kubo?.resume()
          },
          [],
        ),
      )
    }

    for (const [name, test] of placesOf(`outages ${backend}`, outages))
      tortureTest(name, () => world.output(), test)
  })
}
