/**
 * An agent's card: what it can do, where and how other agents talk to it (A2A 1.0, and 0.3 for older clients). Anyone may
 * read it.
 */
import type { Agent } from '../agent.ts'
import type { CardKey } from './card-keys.ts'

/** The versions of A2A, the newest first. Clients that name none speak the oldest. */
export const VERSIONS = ['1.0', '0.3'] as const
export type Version = (typeof VERSIONS)[number]

export interface Card {
  name: string
  supportedInterfaces: { url: string; protocolBinding: string; protocolVersion: string }[]
  [name: string]: unknown
}

const TEXT = ['text/plain']
const CREDENTIAL = 'The gateway token of the agent, or an API key with the scope org:agents:write.'

/** @param url where the agent takes messages. */
export function agentCard(agent: Pick<Agent, 'name' | 'description'>, url: string, version: Version): Card {
  const description = agent.description?.trim() || `${agent.name}, an agent`
  const common = {
    name: agent.name,
    description,
    version: '1',
    capabilities: { streaming: true, pushNotifications: false },
    defaultInputModes: [...TEXT, 'application/json'],
    defaultOutputModes: TEXT,
    skills: [{ id: 'message', name: 'Talk', description, tags: ['chat'] }],
    supportedInterfaces: VERSIONS.map((protocolVersion) => ({
      url,
      protocolBinding: 'JSONRPC',
      protocolVersion,
    })),
  }
  if (version === '1.0') {
    const httpAuthSecurityScheme = { description: CREDENTIAL, scheme: 'Bearer' }
    return {
      ...common,
      securitySchemes: { bearer: { httpAuthSecurityScheme } },
      securityRequirements: [{ schemes: { bearer: { list: ['org:agents:write'] } } }],
    }
  }
  return {
    ...common,
    protocolVersion: '0.3.0',
    url,
    preferredTransport: 'JSONRPC',
    securitySchemes: { bearer: { type: 'http', scheme: 'bearer', description: CREDENTIAL } },
    security: [{ bearer: ['org:agents:write'] }],
  }
}

/**
 * The card with a signature (JWS) over its canonical form (RFC 8785).
 * @param jku where the public key is.
 */
export function signCard(card: Card, key: CardKey, jku: string): Card {
  const { alg, kid } = key.publicKey
  const header = encode(JSON.stringify({ alg, jku, kid, typ: 'JOSE' }))
  const signature = key.sign(`${header}.${encode(canonical(card))}`)
  return { ...card, signatures: [{ protected: header, signature }] }
}

const encode = (text: string): string => Buffer.from(text).toString('base64url')

/** RFC 8785, for values without numbers. */
function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const entries = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1))
  return `{${entries.map(([name, one]) => `${JSON.stringify(name)}:${canonical(one)}`).join(',')}}`
}
