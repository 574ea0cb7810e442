/**
 * A seeded schedule of faults over a load of pins, deletions and cancellations, with the same contents in several
 * workspaces. One of them is on a plan that fits only some of the contents.
 */
import assert from 'node:assert/strict'
import { after, before, describe } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { type Source, startSource } from './content.ts'
import { assertSettled, type Reason } from './invariants.ts'
import { Ledger, type PinRequest } from './ledger.ts'
import { Random, replay } from './seed.ts'
import type { Tenant } from './subject.ts'
import { tortureTest } from './suite.ts'
import { note, printSummary } from './summary.ts'
import { backends, World } from './world.ts'

const LOAD_MS = 25_000
const CONTENTS = 40
/** About a third of the contents. */
const QUOTA = 400_000
const EXPLAINED: Reason[] = ['lease expired', 'job lost by the queue', 'pin that nothing keeps']
/**
 * Kubo drops an existing pin to add it again, as when two clients pin the same content at once: killed in between, it
 * has none.
 */
const BY_KUBO: Reason[] = ['pin missing']

type Fault = (world: World, random: Random) => Promise<void>

const backAfter = (random: Random) => delay(random.between(0, 1500))
const faults: Record<string, Fault> = {
  'web killed': async ({ web }) => web.kill(),
  'worker killed': async ({ workers }, random) => random.pick(workers).kill(),
  'all killed': async ({ roles }) => {
    for (const role of roles) role.kill()
  },
  // Longer than a lease: when it comes back, another worker has its operation.
  'worker hangs': async ({ workers }, random) => {
    const worker = random.pick(workers)
    worker.pause()
    await delay(random.between(3500, 6000))
    worker.resume()
  },
  'queue flushed': (world) => world.flushQueue(),
  'PostgreSQL restarted': async ({ postgres }, random) => {
    await postgres?.halt()
    await backAfter(random)
    await postgres?.restart()
  },
  'PostgreSQL killed': async ({ postgres }, random) => {
    await postgres?.kill()
    await backAfter(random)
    await postgres?.restart()
  },
}
const redisFaults: Record<string, Fault> = {
  'Redis killed': async ({ redis }, random) => {
    await redis?.kill()
    await backAfter(random)
    await redis?.restart()
  },
  'Kubo killed': async ({ kubo }, random) => {
    await kubo?.kill()
    await backAfter(random)
    await kubo?.restart()
  },
}

for (const backend of backends) {
  describe(`a storm of faults, queue on ${backend} (${replay})`, () => {
    let world: World
    let ledger: Ledger
    let tenants: Tenant[]
    let source: Source
    before(async () => {
      world = await World.start(backend, { workers: 2, ownPostgres: true })
      ledger = new Ledger(world)
      await world.createPlan('small', QUOTA)
      tenants = [
        await world.createTenant('one'),
        await world.createTenant('two'),
        await world.createTenant('three', 'small'),
      ]
      source = await startSource(new Random(`contents ${backend}`), CONTENTS)
      source.provider.pace(3)
    })
    after(async () => {
      await source?.provider.stop()
      await world?.stop()
      printSummary()
    })

    /** Pins for one client after another, and sometimes withdraws a pin. */
    const load = async (random: Random, until: number) => {
      const going: Promise<void>[] = []
      while (performance.now() < until) {
        const request = ledger.write(random.pick(tenants), random.pick(source.contents), [
          source.provider.multiaddr,
        ])
        going.push(serve(request, random.next(), random.between(0, 2000)))
        await delay(random.between(20, 150))
      }
      await Promise.all(going)
    }
    const serve = async (request: PinRequest, chance: number, afterMs: number) => {
      await ledger.insist(request)
      if (chance > 0.5) return
      await delay(afterMs)
      if (chance < 0.3) await ledger.remove(request)
      else await ledger.cancel(request)
    }
    const attack = async (random: Random, until: number) => {
      const schedule = Object.entries({ ...faults, ...(backend === 'redis' && redisFaults) })
      const done: string[] = []
      while (performance.now() < until) {
        await delay(random.between(300, 2500))
        const [name, fault] = random.pick(schedule)
        done.push(name)
        await fault(world, random)
      }
      return done
    }

    tortureTest(
      'a storm of faults loses nothing, does nothing twice, and keeps the quota',
      () => world.output(),
      async () => {
        const end = performance.now() + LOAD_MS
        const [done] = await Promise.all([
          attack(new Random(`faults ${backend}`), end),
          load(new Random(`load ${backend}`), end),
        ])
        const quiet = performance.now()
        console.log(`${backend}: ${ledger.requests.length} requests; ${done.join(', ')}`)
        await ledger.settle()
        note(
          `${done.length} faults, ${ledger.requests.length} requests: all ended`,
          'any',
          backend,
          performance.now() - quiet,
        )
        const explained = done.includes('Kubo killed') ? [...EXPLAINED, ...BY_KUBO] : EXPLAINED
        await assertSettled(world, ledger, { explained })
        await assertQuota(world, tenants[2] as Tenant)
      },
    )
  })
}

/** Asserts that pinned files fit the plan, and that some were refused. */
async function assertQuota(world: World, { workspaceId }: Tenant): Promise<void> {
  const rows = await world.query<{ status: string; bytes: number; count: number }>(
    `SELECT status, coalesce(sum(size), 0)::int AS bytes, count(*)::int AS count FROM file
     WHERE workspace_id = $1 GROUP BY status`,
    [workspaceId],
  )
  const pinned = rows.find(({ status }) => status === 'pinned')
  assert.ok(
    pinned && pinned.bytes <= QUOTA,
    `the quota of ${QUOTA} bytes is exceeded: ${JSON.stringify(rows)}`,
  )
  assert.ok(
    rows.some(({ status }) => status === 'over_free_limit'),
    'the load was meant to exceed the quota',
  )
}
