/**
 * Every kind of long operation, declared once, without its code: the web side accepts and dispatches
 * by this table, and the workers must have exactly one handler for each entry (`workers/index.ts`).
 */

/** A queue of jobs; each worker process serves the queues it was told to. */
export type QueueName = 'pins' | 'repairs' | 'storage' | 'agents' | 'workspaces'
export const QUEUES: readonly QueueName[] = ['pins', 'repairs', 'storage', 'agents', 'workspaces']

interface Kind {
  queue: QueueName
  /** Whether a client may cancel it. */
  cancelable: boolean
  /** Tries that may end in an unforeseen error before the operation fails. */
  maxFaults: number
}

const kinds = {
  /** Retrieve the content of a new file and pin it. */
  'pin.add': { queue: 'pins', cancelable: true, maxFaults: 8 },
  /** Pin again what the IPFS node has lost; the file stays visible meanwhile. */
  'pin.repair': { queue: 'repairs', cancelable: false, maxFaults: 8 },
  /** Release the content of a deleted file, unless something else keeps it. */
  'pin.remove': { queue: 'storage', cancelable: false, maxFaults: 1000 },
  /** Release content that a snapshot, a skill or a template kept (`input`: network, cid), unless something else keeps it. */
  'content.release': { queue: 'storage', cancelable: false, maxFaults: 1000 },
  /** Bring a new agent up: container, secrets, gateway, scripts. */
  'agent.provision': { queue: 'agents', cancelable: false, maxFaults: 5 },
  /** Start an agent again, on another engine version when `input.version` names one. */
  'agent.restart': { queue: 'agents', cancelable: false, maxFaults: 5 },
  /** Run an agent's `build` script, then `start`. */
  'agent.scripts': { queue: 'agents', cancelable: false, maxFaults: 5 },
  /** Commit an agent's workspace, store its tree on IPFS and pin it. */
  'agent.sync': { queue: 'workspaces', cancelable: false, maxFaults: 5 },
  /** Save an agent's workspace, then put the snapshot `input.snapshotCid` in its place. */
  'agent.reset': { queue: 'workspaces', cancelable: false, maxFaults: 5 },
  /** Take over what was pushed to an agent's repository: apply its manifest, then `build` and `start`. */
  'agent.push': { queue: 'workspaces', cancelable: false, maxFaults: 5 },
  /** Make an agent's skill folders those of the skills that are attached to it. */
  'agent.skills': { queue: 'agents', cancelable: false, maxFaults: 5 },
  /** Remove a deleted agent's container and volume. */
  'agent.delete': { queue: 'agents', cancelable: false, maxFaults: 1000 },
} as const satisfies Record<string, Kind>

export type OperationKind = keyof typeof kinds
export const catalog: Readonly<Record<OperationKind, Kind>> = kinds
export const OPERATION_KINDS = Object.keys(kinds) as OperationKind[]

export const OPERATION_STATES = ['queued', 'running', 'succeeded', 'failed', 'canceled'] as const
export type OperationState = (typeof OPERATION_STATES)[number]

export function isFinished(state: OperationState): boolean {
  return state === 'succeeded' || state === 'failed' || state === 'canceled'
}
