/**
 * Two `web` and four `worker` processes get a mix of requests about files, up to 1,000 a second. The benchmark measures
 * the rate that they sustain, the processors that each process uses, and latencies below that rate. Then it kills Redis
 * and PostgreSQL, and checks that everything that was accepted has ended once. Compared with the least that Express,
 * pg, BullMQ and Kubo need for the same, on the same servers and rows.
 *
 * BERTH_TEST_MIXED_FILES (100000), BERTH_TEST_MIXED_RATE (1000 a second) and BERTH_TEST_MIXED_SECONDS (25, of each
 * phase) change it. docs/scale.md has the figures.
 */
import { cpus } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import type { Server } from '../support/servers.ts'
import { startBareMixed } from './support/bare-mixed.ts'
import { endOnSignal } from './support/end-on-signal.ts'
import { type Outcome, settle } from './support/mixed-check.ts'
import { type Kind, MixedRequests, SHARES } from './support/mixed-requests.ts'
import { endAll, type MixedWorld, type Roles, startMixedWorld } from './support/mixed-world.ts'
import { type Driven, drive, failures, outage, percentiles } from './support/open-load.ts'
import { print, type Result } from './support/report.ts'
import { ms } from './support/time.ts'

export const title = 'A mix of requests about files'

const FILES = Number(process.env.BERTH_TEST_MIXED_FILES ?? 100_000)
const RATE = Number(process.env.BERTH_TEST_MIXED_RATE ?? 1000)
const SECONDS = Number(process.env.BERTH_TEST_MIXED_SECONDS ?? 25)
const WARM_UP_SECONDS = 5
/** Requests at a time: more would only wait. */
const AT_A_TIME = 64
/** The share of the sustained rate at which latencies are measured. */
const CALM = 0.6
/** How long a server stays away. */
const AWAY_MS = 1000
const SETTLE_MS = 60_000
const SHOWN = 5

interface Fault {
  name: string
  /** Ms since the load began: when it was killed, and when it answered again. */
  from: number
  back: number
}

export async function bench(): Promise<Result[]> {
  await using stack = new AsyncDisposableStack()
  endOnSignal(stack)
  const world = await startMixedWorld(FILES, stack)
  const berth = await measure(world, world, stack)
  const calmRate = Math.round(berth.full.perSecond * CALM)
  const { driven, faults } = await withFaults(world, berth.requests, calmRate)
  const sentAgain = await berth.requests.insist()
  const outcome = await settle(world.pool, world.storage, berth.requests.items, SETTLE_MS)
  for (const what of [...outcome.lost, ...outcome.doubled].slice(0, SHOWN)) console.error(`  ${what}`)
  const ended = world.ended()
  for (const what of ended) console.error(`  ended by itself: ${what}`)

  await endAll(world.roles)
  const bare = await measure(world, await startBareMixed(world, stack), stack, calmRate)
  return [
    {
      what: `requests per second, of up to ${RATE.toLocaleString('en')}`,
      berth: `${berth.full.perSecond.toFixed(0)} /s`,
      bare: `${bare.full.perSecond.toFixed(0)} /s`,
      ratio: berth.full.perSecond / bare.full.perSecond,
    },
    ...processors(berth, bare),
    ...(Object.keys(SHARES) as Kind[]).map((kind) => latencies(kind, calmRate, berth.calm, bare.calm)),
    {
      what: 'responses that were no success: at most load, and below it',
      berth: `${failures(berth.full.sent)}; ${failures(berth.calm.sent)}`,
      bare: `${failures(bare.full.sent)}; ${failures(bare.calm.sent)}`,
    },
    ...faults.map((fault, i) => showFault(fault, faults[i + 1]?.from ?? Number.POSITIVE_INFINITY, driven)),
    { what: 'responses that were no success: with both faults', berth: failures(driven.sent) },
    { what: 'processes of Berth that ended by themselves', ...none(ended.length) },
    ...showOutcome(outcome, sentAgain),
  ]
}

interface Measured {
  requests: MixedRequests
  full: Driven
  calm: Driven
  /** Seconds of processor time under full load, by process. */
  used: Map<string, number>
}

/** All that the servers can do for a while, and then latencies at `calmRate`, or at a share of that. */
async function measure(
  world: MixedWorld,
  { urls, roles }: { urls: string[]; roles: Roles },
  stack: AsyncDisposableStack,
  calmRate?: number,
): Promise<Measured> {
  const requests = new MixedRequests(urls, world.tenants, AT_A_TIME)
  stack.defer(() => requests.close())
  const next = () => requests.next()
  const atATime = AT_A_TIME
  await drive(next, { perSecond: RATE, seconds: WARM_UP_SECONDS, atATime })
  const before = await world.processorTimes(roles)
  const full = await drive(next, { perSecond: RATE, seconds: SECONDS, atATime })
  const after = await world.processorTimes(roles)
  const used = new Map([...after].map(([name, time]) => [name, time - (before.get(name) ?? 0)]))
  const perSecond = calmRate ?? Math.round(full.perSecond * CALM)
  const calm = await drive(next, { perSecond, seconds: SECONDS, atATime })
  return { requests, full, calm, used }
}

/** Redis and then PostgreSQL are killed, and restarted after a second. */
async function withFaults(
  world: MixedWorld,
  requests: MixedRequests,
  perSecond: number,
): Promise<{ driven: Driven; faults: Fault[] }> {
  const began = performance.now()
  const seconds = Math.max(2 * SECONDS, 20)
  const load = drive(() => requests.next(), { perSecond, seconds, atATime: AT_A_TIME })
  const faults: Fault[] = []
  const strike = async (name: string, server: Server) => {
    const from = performance.now() - began
    await server.kill()
    await delay(AWAY_MS)
    await server.restart()
    faults.push({ name, from, back: performance.now() - began })
  }
  await delay(seconds * 200)
  await strike('Redis', world.redis)
  await delay(seconds * 300)
  await strike('PostgreSQL', world.postgres)
  return { driven: await load, faults }
}

/** Seconds of a second: with two processors, 2 is all. */
function processors(berth: Measured, bare: Measured): Result[] {
  const show = ({ used, full }: Measured, names: RegExp) => {
    const of = [...used].filter(([name]) => names.test(name))
    return of.length > 0 ? of.map(([, time]) => (time / full.seconds).toFixed(2)).join(' + ') : ''
  }
  const sum = ({ used, full }: Measured) =>
    ([...used.values()].reduce((all, time) => all + time, 0) / full.seconds).toFixed(2)
  const row = (what: string, names: RegExp): Result => ({
    what: `processors used at most load: ${what}`,
    berth: show(berth, names),
    bare: show(bare, names),
  })
  return [
    row('web', /^web/),
    row('worker', /^worker/),
    row('PostgreSQL', /^PostgreSQL/),
    row('Redis', /^Redis/),
    row('Kubo', /^Kubo/),
    row('the load generator', /^load/),
    { what: `processors used at most load: all, of ${cpus().length}`, berth: sum(berth), bare: sum(bare) },
  ]
}

function latencies(kind: Kind, rate: number, berth: Driven, bare: Driven): Result {
  const [own, other] = [percentiles(berth.sent, kind), percentiles(bare.sent, kind)]
  const show = ({ p50, p99 }: { p50: number; p99: number }) => `${ms(p50)}, ${ms(p99)}`
  return {
    what: `${kind}: median and 99th percentile at ${rate} /s`,
    berth: show(own),
    bare: show(other),
    ratio: own.p50 / other.p50,
  }
}

function showFault({ name, from, back }: Fault, until: number, { sent }: Driven): Result {
  const { failing, silent } = outage(sent, from, until)
  const away = ((back - from) / 1000).toFixed(1)
  return {
    what: `${name} killed, away for ${away} s: time with 5xx, longest time without any success`,
    berth: `${failing.toFixed(1)} s, ${silent.toFixed(1)} s`,
  }
}

function showOutcome({ accepted, unfinished, lost, doubled, seconds }: Outcome, sentAgain: number): Result[] {
  return [
    {
      what: 'accepted pins, uploads, changes and deletions; pins sent again because the response was lost',
      berth: `${accepted.toLocaleString('en')}; ${sentAgain}`,
    },
    { what: 'time until all operations had ended', berth: `${seconds.toFixed(1)} s` },
    { what: `operations that have not ended within ${SETTLE_MS / 1000} s`, ...none(unfinished) },
    { what: 'accepted, and lost or undone', ...none(lost.length) },
    { what: 'accepted, and done twice', ...none(doubled.length) },
  ]
}

const none = (count: number) => ({ berth: String(count), bare: '0', ratio: count, goal: { atMost: 0 } })

if (import.meta.main) print(title, await bench())
