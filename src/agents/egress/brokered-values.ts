/** The values of agents' brokered secrets, for egress proxies, which ask for them twice a second. */
import type { BrokeredSecret } from '../../agent-proxy/policy/protocol.ts'
import type { Pool } from '../../db/pool.ts'
import { findBrokeredSecrets } from '../../db/statements/egress.ts'
import type { Encryption } from '../../lib/encryption.ts'
import type { Logger } from '../../log.ts'
import { toVia } from '../secrets/brokered.ts'

/** A value that no proxy has asked for during this time leaves the memory with the next question. */
const KEPT_MS = 60_000

interface Opened {
  ciphertext: Buffer
  /** Undefined if it does not decrypt. */
  value: string | undefined
}

export class BrokeredValues {
  readonly #services: { pool: Pool; encryption: Encryption; log: Logger }
  /** Opened values by the secret's id: those used since `#since`, and those of the time before. */
  #used = new Map<string, Opened>()
  #earlier = new Map<string, Opened>()
  #since = performance.now()

  constructor(services: { pool: Pool; encryption: Encryption; log: Logger }) {
    this.#services = services
  }

  /** The secrets of agents, by the agents' ids in paths. Secrets that cannot be decrypted are left out. */
  async find(agentIds: readonly string[]): Promise<Map<string, BrokeredSecret[]>> {
    const found = new Map<string, BrokeredSecret[]>()
    if (agentIds.length === 0) return found
    const { rows } = await findBrokeredSecrets.run(this.#services.pool, [...new Set(agentIds)])
    this.#forgetUnused()
    for (const { id, workspaceId, ciphertext, agents, placeholder, ...brokering } of rows) {
      const value = this.#open(workspaceId, id, ciphertext)
      if (value === undefined) continue
      const { hosts } = brokering
      const secret = { placeholder, value, hosts, via: toVia(brokering) ?? { as: 'bearer' as const } }
      for (const agentId of agents) found.set(agentId, [...(found.get(agentId) ?? []), secret])
    }
    return found
  }

  #open(workspaceId: string, id: string, ciphertext: Buffer): string | undefined {
    const known = this.#used.get(id) ?? this.#earlier.get(id)
    const opened = known?.ciphertext.equals(ciphertext)
      ? known
      : { ciphertext, value: this.#decrypt(workspaceId, id, ciphertext) }
    this.#used.set(id, opened)
    return opened.value
  }

  #decrypt(workspaceId: string, id: string, ciphertext: Buffer): string | undefined {
    try {
      return this.#services.encryption.decrypt(workspaceId, id, ciphertext)
    } catch (error) {
      this.#services.log.warn({ err: error, secret: id }, 'a brokered secret cannot be decrypted')
      return undefined
    }
  }

  #forgetUnused(): void {
    if (performance.now() < this.#since + KEPT_MS) return
    this.#earlier = this.#used
    this.#used = new Map()
    this.#since = performance.now()
  }
}
