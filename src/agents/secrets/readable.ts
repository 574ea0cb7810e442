/** Which secrets programs in agents can read, and whether an agent has the current ones. */
import type { Secret } from '../../db/generated/client.ts'
import { MODEL_PROVIDERS } from '../../model-providers.ts'

/**
 * Whether agents get a virtual key in place of the value: it is a provider's key or the workspace's LLM key, and the
 * model gateway inserts it.
 */
export const isOfGateway = ({ name, modelKeyHash = null }: Pick<Secret, 'name'> & Partial<Secret>): boolean =>
  modelKeyHash !== null || MODEL_PROVIDERS.some(({ secrets }) => secrets.includes(name))

type Known = Pick<Secret, 'name' | 'type' | 'modelKeyHash' | 'hosts'>

/** Whether agents in containers and pods can read a secret. */
export const isReadable = (secret: Known): boolean =>
  secret.type === 'variable' || !(secret.hosts.length > 0 || isOfGateway(secret))

/** The state of an agent at its start. */
export interface Started {
  isRunning: boolean
  /** The version of the secret at that time; undefined if the agent did not have it. */
  version: number | undefined
  /** Null if it started before Berth had a model gateway. */
  modelKeyHash: Uint8Array | null
  /** Null for a process, which has no egress proxy. */
  proxyKeyHash: Uint8Array | null
}

/**
 * Whether programs in an agent can read a secret, and whether it needs no restart to have the current one. A new value
 * that a proxy or gateway inserts needs none.
 */
export function inAgent(
  secret: Known & Pick<Secret, 'version' | 'placeholderVersion' | 'brokeredVersion'>,
  { isRunning, version, modelKeyHash, proxyKeyHash }: Started,
): { readable: boolean; synced: boolean } {
  const hasVersion = (least: number | null) => version !== undefined && version >= (least ?? 0)
  const isCurrent = version === secret.version
  if (isReadable(secret)) return { readable: true, synced: isRunning && isCurrent }
  if (secret.hosts.length === 0) {
    const hasKey = modelKeyHash !== null
    return { readable: !hasKey && hasVersion(0), synced: isRunning && (hasKey ? hasVersion(0) : isCurrent) }
  }
  const isProcess = modelKeyHash !== null && proxyKeyHash === null
  return {
    readable: isProcess || (version !== undefined && !hasVersion(secret.brokeredVersion)),
    synced: isRunning && (isProcess ? isCurrent : hasVersion(secret.placeholderVersion)),
  }
}
