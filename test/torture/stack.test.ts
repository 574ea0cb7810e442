/** The whole of `npm start`: its only worker killed, all of it killed and restarted, its PostgreSQL killed. */
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { postgresUrl } from '../../src/standalone/postgres.ts'
import { kuboBinary } from '../support/kubo.ts'
import { until } from '../support/processes.ts'
import { type Stack, type StackKind, startStack } from '../support/stack.ts'
import { createAudit } from './audit.ts'
import { type Source, startSource } from './content.ts'
import { holdLastLeaves } from './held.ts'
import { assertSettled, type Reason } from './invariants.ts'
import { Ledger } from './ledger.ts'
import { placesOf, Random, replay } from './seed.ts'
import { Subject, type Tenant } from './subject.ts'
import { tortureTest } from './suite.ts'
import { note, printSummary } from './summary.ts'
import { measureTakeover } from './takeover.ts'

const kinds: StackKind[] = kuboBinary ? ['embedded', 'real'] : ['embedded']
const EXPLAINED: Reason[] = ['lease expired', 'job lost by the queue']
const TAKEOVERS = 2

for (const kind of kinds) {
  describe(`npm start that is killed, on ${kind} parts (${replay})`, () => {
    const random = new Random(`stack ${kind}`)
    let stack: Stack
    let subject: Subject
    let ledger: Ledger
    let tenants: Tenant[]
    before(async () => {
      stack = await startStack({
        kind,
        env: { BERTH_INTERVALS: 'reconcile=1', BERTH_PINS: 'retrySeconds=0.5' },
      })
      const databaseUrl = stack.parts?.postgres.url ?? (await postgresUrl(stack.dataDir))
      if (!databaseUrl) throw new Error('there is no database')
      subject = new Subject({
        url: stack.url,
        metricsPort: Number(stack.env.BERTH_METRICS_PORT),
        databaseUrl,
        dataDir: stack.dataDir,
        ipfsUrl: stack.parts?.kubo.apiUrl,
      })
      await createAudit(subject.pool)
      ledger = new Ledger(subject)
      tenants = [await subject.createTenant('first'), await subject.createTenant('second')]
    })
    after(async () => {
      await subject?.close()
      await stack?.stop()
      printSummary()
    })

    const places: [name: string, test: (source: Source) => Promise<void>, contents: number][] = []
    const torture = (...place: (typeof places)[number]) => places.push(place)
    /** Requests for every content and workspace, with the fault during requests and work. */
    const underLoad = async (source: Source, what: string, fault: () => Promise<void>) => {
      source.provider.pace(5)
      const requests = source.contents.flatMap((content) =>
        tenants.map((tenant) => ledger.write(tenant, content, [source.provider.multiaddr])),
      )
      const sending = (async () => {
        for (const request of requests) {
          await ledger.insist(request)
          await delay(random.between(0, 20))
        }
      })()
      await until('pins run', async () => {
        const rows = await subject.query(`SELECT FROM operation WHERE state = 'running'`)
        return rows.length > 0
      })
      await delay(random.between(0, 300))
      const started = performance.now()
      await fault()
      await sending
      await ledger.settle()
      note(`${what}: all ended`, 'npm start', kind, performance.now() - started)
      // A worker may notice its supervisor's death, and release its attempts, a moment before its own.
      await assertSettled(subject, ledger, { explained: EXPLAINED, restarted: true })
    }

    torture(
      'an operation whose only worker is killed resumes when that is restarted',
      async (source) => {
        const release = await holdLastLeaves(source)
        const [content] = source.contents
        assert.ok(content)
        const request = ledger.write(tenants[0] as Tenant, content, [source.provider.multiaddr])
        await ledger.insist(request)
        for (let i = 0; i < TAKEOVERS; i++) {
          const pid = await stack.pidOf('worker')
          const ms = await measureTakeover(subject.query.bind(subject), request.operationId as string, () =>
            process.kill(pid, 'SIGKILL'),
          )
          note('mid-retrieval: goes on', 'the only worker', kind, ms)
        }
        release()
        await ledger.settle()
        await assertSettled(subject, ledger, { explained: EXPLAINED })
      },
      1,
    )

    torture(
      'npm start resumes when it is restarted after all its processes were killed',
      (source) =>
        underLoad(source, 'SIGKILL of all, start', async () => {
          await stack.kill()
          await stack.restart()
        }),
      40,
    )

    if (kind === 'embedded') {
      torture(
        'npm start resumes when it is restarted after it was killed with its PostgreSQL',
        (source) =>
          underLoad(source, 'SIGKILL of all and PostgreSQL, start', async () => {
            const postmaster = await findPostmaster(subject)
            await stack.kill()
            process.kill(postmaster, 'SIGKILL')
            await stack.restart()
          }),
        40,
      )

      torture(
        'a killed PostgreSQL is restarted by the supervisor',
        (source) =>
          underLoad(source, 'SIGKILL of PostgreSQL', async () => {
            process.kill(await findPostmaster(subject), 'SIGKILL')
          }),
        40,
      )
    }

    for (const [name, test, contents] of placesOf(`stack ${kind}`, places))
      tortureTest(
        name,
        () => stack.output(),
        async () => {
          const source = await startSource(random, contents)
          try {
            await test(source)
          } finally {
            await source.provider.stop()
          }
        },
      )
  })
}

async function findPostmaster(subject: Subject): Promise<number> {
  const [row] = await subject.query<{ data_directory: string }>('SHOW data_directory')
  return Number.parseInt(await readFile(join(row?.data_directory ?? '', 'postmaster.pid'), 'utf8'), 10)
}
