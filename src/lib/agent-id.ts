import { randomInt } from 'node:crypto'

/** An agent's id in paths and names of hosts. */
export const AGENT_ID = /^x[a-z0-9]{7}$/
const ALPHABET = 'abcdefghijklmnopqrstuvwxyz0123456789'

/** A new id: 8 characters, DNS-safe. The table refuses one that was given out before. */
export function newAgentId(): string {
  return `x${Array.from({ length: 7 }, () => ALPHABET[randomInt(ALPHABET.length)]).join('')}`
}

// The names of agents' bridges, by which the agent proxy, which sees no more of Docker, tells those of this Berth.

/** The prefix of all bridges: firewalls of operators name them by it. */
const PREFIX = 'bth-'

/**
 * The bridge of an agent. Linux allows 15 characters: the egress port, in which two Berths of one machine differ, to
 * base 36 in four, and the seven of the agent's id that differ.
 */
export function bridgeOf(agentId: string, egressPort: number): string {
  return `${PREFIX}${tagOf(egressPort)}${agentId.slice(1)}`
}

/** True for the name of an agent's bridge whose egress proxy is at this port. */
export function isBridgeOf(egressPort: number, name: string): boolean {
  return name.length === 15 && name.startsWith(`${PREFIX}${tagOf(egressPort)}`)
}

/** True for a bridge that 0.1.0 made, whose name does not say which Berth made it. */
export const isFormerBridge = (name: string): boolean => /^bth-x[a-z0-9]{7}$/.test(name)

const tagOf = (egressPort: number) => egressPort.toString(36).padStart(4, '0')
