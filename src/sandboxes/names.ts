/** Names and labels of an agent's resources in Docker or in Kubernetes, which identify them later. */

import { SandboxError } from '../errors.ts'
import type { Owner } from './owner.ts'

/** The label with the Berth that created a resource: two Berths may share a Docker engine or a namespace. */
export const INSTANCE_LABEL = 'berth.instance'
export const AGENT_LABEL = 'berth.agent'
export const VERSION_LABEL = 'berth.engine-version'
/** Hash of everything that a sandbox was created from. */
export const SPEC_LABEL = 'berth.spec'

/** The name of an agent’s container or pod, of its volume and of its network. */
export const nameOf = (agentId: string): string => `berth-${agentId}`

export const labelsOf = (instance: string, agentId: string): Record<string, string> => ({
  [INSTANCE_LABEL]: instance,
  [AGENT_LABEL]: agentId,
})

/** Docker's list filter for the resources of all Berths. */
export const LABELLED = { label: [INSTANCE_LABEL] }

type Labels = Record<string, string> | null | undefined

/** True for labels that name the owner, or one of its former labels. */
export function isLabelled({ instance, former }: Owner, labels: Labels): boolean {
  const label = labels?.[INSTANCE_LABEL]
  return label !== undefined && (label === instance || former.includes(label))
}

/** The error for a resource with one of this Berth's names but without its label. */
export function belongsToOthers(what: string, name: string, labels: Labels): SandboxError {
  const label = labels?.[INSTANCE_LABEL]
  const labelled = label ? ` (${INSTANCE_LABEL}=${label})` : ''
  return new SandboxError('internal', `the ${what} ${name} belongs to somebody else${labelled}`)
}

/** The resources whose labels name the owner. A former label counts only if the owner knows the agent. */
export async function ownOf<T extends { Labels?: Labels }>(owner: Owner, things: T[]): Promise<T[]> {
  const labelled = things.filter(({ Labels }) => isLabelled(owner, Labels))
  const former = labelled.filter(({ Labels }) => Labels?.[INSTANCE_LABEL] !== owner.instance)
  if (former.length === 0) return labelled
  const known = await owner.knows(former.flatMap(({ Labels }) => Labels?.[AGENT_LABEL] ?? []))
  return labelled.filter((thing) => !former.includes(thing) || known.has(thing.Labels?.[AGENT_LABEL] ?? ''))
}
