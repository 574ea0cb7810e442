/** Requests all the time, and a fault in the middle. */
import assert from 'node:assert/strict'
import { setTimeout as delay } from 'node:timers/promises'
import { until } from '../support/processes.ts'
import type { Source } from './content.ts'
import { assertSettled, type Reason } from './invariants.ts'
import { Ledger } from './ledger.ts'
import type { Random } from './seed.ts'
import type { Tenant } from './subject.ts'
import { note } from './summary.ts'
import type { World } from './world.ts'

export interface Fault {
  /** For the table of recovery times: what happens to which server. */
  what: string
  victim: string
  strike: () => Promise<void>
  explained: Reason[]
}

export class Load {
  readonly #world: World
  readonly #source: Source
  readonly #random: Random
  readonly #tenants: Tenant[]
  readonly ledger: Ledger

  constructor(world: World, source: Source, random: Random, tenants: Tenant[]) {
    this.#world = world
    this.#source = source
    this.#random = random
    this.#tenants = tenants
    this.ledger = new Ledger(world)
  }

  /** Sends requests all the time, with the fault in the middle; then everything that was accepted ends well. */
  async with({ what, victim, strike, explained }: Fault): Promise<void> {
    const world = this.#world
    const stop = new AbortController()
    const load = (async () => {
      while (!stop.signal.aborted) {
        await Promise.race([this.ledger.send(this.#write()), delay(50)])
        await delay(this.#random.between(5, 30))
      }
    })()
    await until('pins run', async () => {
      const [row] = await world.query<{ count: number }>(
        `SELECT count(*)::int AS count FROM operation WHERE state = 'running'`,
      )
      return row && row.count > 2
    })
    await strike()
    const back = performance.now()
    await this.ledger.insist(this.#write())
    note(`${what}: accepts again`, victim, world.backend, performance.now() - back)
    stop.abort()
    await load
    await this.ledger.settle()
    note(`${what}: all ended`, victim, world.backend, performance.now() - back)
    await assertSettled(world, this.ledger, { explained })
    for (const role of world.roles) {
      assert.deepEqual(
        role.ends.map(({ output }) => output.slice(-2000)),
        [],
        `${role.name} did not survive`,
      )
    }
  }

  #write() {
    const hostNodes = [this.#source.provider.multiaddr]
    return this.ledger.write(
      this.#random.pick(this.#tenants),
      this.#random.pick(this.#source.contents),
      hostNodes,
    )
  }
}
