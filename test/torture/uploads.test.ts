/**
 * Uploads and deletions whose processes are killed, with GC running all the time: nothing that was acknowledged is
 * lost, and nothing stays without an owner.
 */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { CID } from 'multiformats/cid'
import type { CrashPoint } from '../../src/lib/crash-point.ts'
import { BlockFolder } from '../../src/storage/embedded/blocks.ts'
import { createEmbeddedStorage } from '../../src/storage/embedded.ts'
import type { Network } from '../../src/storage/port.ts'
import { until } from '../support/processes.ts'
import { assertKept, hashOf, type Watched } from './kept.ts'
import { placesOf, Random, replay } from './seed.ts'
import type { Tenant } from './subject.ts'
import { tortureTest } from './suite.ts'
import { note, printSummary } from './summary.ts'
import { makeContent, Uploader, type Way } from './uploader.ts'
import { contentBackends, World } from './world.ts'

const STORM_MS = 12_000
const WAYS: Way[] = ['multipart', 'tus', 'car']
const POINTS: [Way, CrashPoint][] = [
  ['multipart', 'mid-upload'],
  ['multipart', 'after-add'],
  ['multipart', 'after-keep'],
  ['tus', 'after-add'],
  ['tus', 'after-keep'],
  ['car', 'mid-upload'],
  ['car', 'after-add'],
  ['car', 'after-keep'],
]
/** Where the blocks of an upload are stored in S3. */
const IN_BUCKET: typeof POINTS = [
  ['multipart', 'pack-before-put'],
  ['tus', 'pack-after-put'],
  ['car', 'pack-after-commit'],
]
/** The empty directory that Kubo always has, as the root of its MFS. */
const KUBO_OWN = hashOf(CID.parse('QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3Nn'))

for (const backend of contentBackends) {
  describe(`uploads under fire, on ${backend} (${replay})`, () => {
    const random = new Random(`uploads ${backend}`)
    const uploaders: Uploader[] = []
    let world: World
    let watched: Record<Network, Watched>
    let tenants: Tenant[]
    before(async () => {
      world = await World.start(backend, {
        env: {
          BERTH_INTERVALS: 'gc=1,gcGrace=1,reconcile=1',
          BERTH_OWN_KUBO: 'public',
          BERTH_UPLOAD_EXPIRY_SECONDS: '30',
        },
      })
      tenants = [await world.createTenant('one'), await world.createTenant('two')]
      watched = watch(world)
    })
    after(async () => {
      await world?.stop()
      printSummary()
    })
    const torture = (name: string, test: () => Promise<void>) => tortureTest(name, () => world.output(), test)
    const uploader = (tenant: Tenant, network: Network, way: Way, content: Uint8Array) => {
      const made = new Uploader({ url: () => world.url, tenant, network, way, content })
      uploaders.push(made)
      return made
    }
    const [one, two] = [() => tenants[0] as Tenant, () => tenants[1] as Tenant]
    const sizeOf = (way: Way) => (way === 'car' ? random.between(1, 900_000) : random.between(1, 3_500_000))

    const points = backend === 's3' ? [...POINTS, ...IN_BUCKET] : POINTS
    for (const [way, point] of placesOf(`uploads ${backend}`, points)) {
      torture(`a ${way} upload outlives its web process, killed at ${point}`, async () => {
        const mark = await world.arm(world.web, point)
        const length = way === 'car' ? 1_400_000 : 2_500_000
        const network = way === 'car' ? 'public' : random.pick(NETWORKS)
        const sent = uploader(one(), network, way, makeContent(random, length))
        const acknowledged = sent.upload()
        await until('the crash', () => existsSync(mark))
        const crashed = performance.now()
        await acknowledged
        note(`${way}, ${point}: acknowledged`, 'web', backend, performance.now() - crashed)
        await assertKept(world, watched, uploaders)
      })
    }

    torture(
      'a deletion whose worker is killed leaves what another workspace uploads at the same time',
      async () => {
        const content = makeContent(random, 1_500_000)
        const first = uploader(one(), 'private', 'multipart', content)
        await first.upload()
        const mark = await world.arm(world.workers[0] as (typeof world.roles)[number], 'after-claim')
        await first.remove()
        const second = uploader(two(), 'private', 'multipart', content)
        await Promise.all([until('the crash', () => existsSync(mark)), second.upload()])
        await assertKept(world, watched, uploaders)
      },
    )

    torture('a storm of uploads, deletions and kills loses nothing', async () => {
      const until = performance.now() + STORM_MS
      // The same few contents in both workspaces: what one deletes, another has just added.
      const contents = WAYS.flatMap((way) =>
        [0, 1].map(() => ({ way, bytes: makeContent(random, sizeOf(way)) })),
      )
      const storm = contents.flatMap(({ way, bytes }) =>
        tenants.flatMap((tenant) =>
          (way === 'car' ? (['public'] as const) : NETWORKS).map((network) =>
            uploader(tenant, network, way, bytes),
          ),
        ),
      )
      let steps = 0
      const clients = storm.map(async (client, index) => {
        const own = new Random(`client ${backend} ${index}`)
        while (performance.now() < until) {
          await client.upload()
          if (own.next() < 0.6) await client.remove()
          steps++
          await delay(own.between(0, 400))
        }
      })
      let kills = 0
      while (performance.now() < until) {
        await delay(random.between(400, 2500))
        kills++
        const victim = random.next()
        if (victim < 0.5) world.web.kill()
        else if (victim < 0.8 || !world.kubo) random.pick(world.workers).kill()
        else await world.kubo.kill().then(() => world.kubo?.restart())
      }
      const quiet = performance.now()
      await Promise.all(clients)
      console.log(`${backend}: ${steps} steps of ${storm.length} clients, ${kills} kills`)
      await assertKept(world, watched, uploaders, { blocks: true })
      note(`${kills} kills, ${steps} uploads: all settled`, 'any', backend, performance.now() - quiet)
    })
  })
}

const NETWORKS: Network[] = ['public', 'private']

/** The private network is the embedded store in all worlds. */
function watch(world: World): Record<Network, Watched> {
  const { bucket } = world
  if (bucket) {
    const inBucket = (network: Network): Watched => ({
      storage: network === 'public' ? world.storage : bucket.open(network),
      async blocks() {
        assert.deepEqual(await bucket.strays(network), [], 'each object has a row')
        return bucket.blocks(network)
      },
    })
    return { public: inBucket('public'), private: inBucket('private') }
  }
  const dir = (network: Network) => join(world.env.BERTH_DATA_DIR ?? '', 'ipfs', network)
  const embedded = (network: Network): Watched => ({
    storage: createEmbeddedStorage({ dir: dir(network), network, offline: true }),
    blocks: () => blocksIn(dir(network)),
  })
  const { kubo } = world
  const onKubo: Watched = { storage: world.storage, blocks: () => blocksOfKubo(kubo?.apiUrl ?? '') }
  return { public: kubo ? onKubo : embedded('public'), private: embedded('private') }
}

async function blocksIn(dir: string): Promise<Set<string>> {
  const folder = new BlockFolder(dir, { touchAfterMs: Number.POSITIVE_INFINITY })
  const files = await readdir(folder.dir, { recursive: true }).catch(() => [])
  const cids = files.map((file) => folder.decode(file.split('/').at(-1) ?? '')).filter((cid) => cid !== null)
  return new Set(cids.map(hashOf))
}

async function blocksOfKubo(apiUrl: string): Promise<Set<string>> {
  const answer = await fetch(`${apiUrl}/api/v0/refs/local`, { method: 'POST' })
  const lines = (await answer.text()).trim().split('\n').filter(Boolean)
  const hashes = lines.map((line) => hashOf(CID.parse((JSON.parse(line) as { Ref: string }).Ref)))
  return new Set(hashes.filter((hash) => hash !== KUBO_OWN))
}
