import { randomInt } from 'node:crypto'

/** An agent's id in paths and host names. */
export const AGENT_ID = /^x[a-z0-9]{7}$/
const ALPHABET = 'abcdefghijklmnopqrstuvwxyz0123456789'

/** Creates an id: 8 characters, DNS-safe. The table rejects an id that was used before. */
export function newAgentId(): string {
  return `x${Array.from({ length: 7 }, () => ALPHABET[randomInt(ALPHABET.length)]).join('')}`
}

// The names of agents' bridges. The agent proxy sees no more of Docker, and uses the names to recognise those of this
// Berth.

/** The prefix of all bridges: operators' firewalls refer to it. */
const PREFIX = 'bth-'

/**
 * The bridge of an agent. Linux allows 15 characters: the prefix, the egress port (in which two Berths on one machine
 * differ) as four base-36 digits, and the seven variable characters of the agent's id.
 */
export function bridgeOf(agentId: string, egressPort: number): string {
  return `${PREFIX}${tagOf(egressPort)}${agentId.slice(1)}`
}

/** True for the name of an agent's bridge whose egress proxy uses this port. */
export function isBridgeOf(egressPort: number, name: string): boolean {
  return name.length === 15 && name.startsWith(`${PREFIX}${tagOf(egressPort)}`)
}

const tagOf = (egressPort: number) => egressPort.toString(36).padStart(4, '0')
