/** What the things of an agent are called in Docker, and how they are known again. */

/** Which Berth made it: two of them may share an engine. */
export const INSTANCE_LABEL = 'berth.instance'
export const AGENT_LABEL = 'berth.agent'
export const VERSION_LABEL = 'berth.engine-version'
/** Hash of all that a container was made from. */
export const SPEC_LABEL = 'berth.spec'

/** The name of an agent's container, of its volume and of its network. */
export const nameOf = (agentId: string): string => `berth-${agentId}`

export const labelsOf = (instance: string, agentId: string): Record<string, string> => ({
  [INSTANCE_LABEL]: instance,
  [AGENT_LABEL]: agentId,
})

/** Docker's list filter for all that an instance has made. */
export const ownFilter = (instance: string): { label: string[] } => ({
  label: [`${INSTANCE_LABEL}=${instance}`],
})
