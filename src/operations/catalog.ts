/**
 * Every kind of long operation, declared once, without its code. The types of inputs and results, the scopes of
 * `/v0/operations`, dispatch and retries are derived from this table. A worker does not start unless `workers/handlers`
 * has exactly one handler per entry.
 */
import { z } from 'zod'
import { messages } from '../errors.ts'
import { grants, type Scope } from '../http/principal.ts'

/** A queue of jobs; each worker process serves the queues that it is configured for. */
export type QueueName = 'pins' | 'repairs' | 'storage' | 'agents' | 'workspaces' | 'webhooks'
export const QUEUES: readonly QueueName[] = ['pins', 'repairs', 'storage', 'agents', 'workspaces', 'webhooks']

/** When a failed attempt is repeated; `backoffMs` has the formula. */
export interface Retry {
  /** How many attempts may end in an unexpected error before the operation fails. */
  maxErrors: number
  /** Wait after the first attempt, in milliseconds; it doubles with each further attempt, up to `maxMs`. */
  firstMs: number
  maxMs: number
  /** An operation that began this many milliseconds ago fails instead of being retried; null for never. */
  forMs: number | null
}

interface Kind {
  /** A sentence for the documentation. */
  summary: string
  queue: QueueName
  /** The table of the row that `target_id` refers to; `content` if it only identifies the operation itself. */
  subject: 'file' | 'agent' | 'content' | 'webhook'
  /** At most one operation on the same subject runs at a time, in the order of their ids. */
  exclusive: boolean
  /** A request joins a waiting operation with the same input instead of adding another; for exclusive kinds. */
  coalesces: boolean
  /** The resource whose readers may read the operation, and whose writers may cancel it; null if no client sees it. */
  resource: 'files' | 'agents' | null
  /** The input of the handler, in addition to the subject. */
  input: z.ZodObject
  /** The result for the client that started it. */
  result: z.ZodObject
  /** A client may cancel the operation. */
  cancelable: boolean
  retry: Retry
  /** An attempt that takes longer, in milliseconds, fails the operation with the code `timeout`; null for no limit. */
  timeoutMs: number | null
  /** The public message of a failure if the handler supplies none. */
  failureMessage: string
}

const nothing = z.object({})
const INTERNAL = 'Internal error'
const onFile = { subject: 'file', exclusive: true, coalesces: false, resource: 'files' } as const
const onAgent = { subject: 'agent', exclusive: true, coalesces: true, resource: 'agents' } as const
/** The node that stores content is sometimes unavailable, and unreferenced content must not stay there. */
const untilReleased = { maxErrors: 1000, firstMs: 1000, maxMs: 60_000, forMs: null }
/** While the IPFS node is unavailable, attempts are cheap and frequent. */
const untilPinned = { maxErrors: 8, firstMs: 1000, maxMs: 30_000, forMs: null }
/** How long to wait for an unavailable component; if it returns later, the reconciler continues. */
const tenMinutes = { maxErrors: 5, firstMs: 500, maxMs: 10_000, forMs: 600_000 }

const kinds = {
  'pin.add': {
    summary: 'Retrieve the content of a new file and pin it',
    ...onFile,
    queue: 'pins',
    input: nothing,
    result: nothing,
    cancelable: true,
    retry: untilPinned,
    timeoutMs: null,
    failureMessage: INTERNAL,
  },
  'pin.repair': {
    summary: 'Pin content again that the IPFS node has lost; the file stays visible',
    ...onFile,
    queue: 'repairs',
    input: nothing,
    result: nothing,
    cancelable: false,
    retry: untilPinned,
    timeoutMs: null,
    failureMessage: INTERNAL,
  },
  'pin.remove': {
    summary: 'Release the content of a deleted file, unless something else keeps it',
    ...onFile,
    queue: 'storage',
    input: nothing,
    result: nothing,
    cancelable: false,
    retry: untilReleased,
    timeoutMs: null,
    failureMessage: INTERNAL,
  },
  'content.release': {
    summary: 'Release content that a snapshot, a skill or a template kept, unless something else keeps it',
    subject: 'content',
    exclusive: true,
    coalesces: false,
    resource: 'agents',
    queue: 'storage',
    input: z.object({ network: z.enum(['public', 'private']), cid: z.string() }),
    result: nothing,
    cancelable: false,
    retry: untilReleased,
    timeoutMs: null,
    failureMessage: INTERNAL,
  },
  'agent.provision': {
    summary: 'Start a new agent: container, secrets, gateway, scripts',
    ...onAgent,
    queue: 'agents',
    input: z.object({
      /** From this the keys of the spare are derived that the agent has taken over. */
      spare: z.string().optional(),
      /** The settings that it was started with, as a text: with others its sandbox is made again. */
      spareSettings: z.string().optional(),
    }),
    /** Parts of the agent's initial manifest that could not be applied. */
    result: z.object({ problems: z.array(z.string()).optional() }),
    cancelable: false,
    retry: tenMinutes,
    timeoutMs: null,
    failureMessage: messages.gatewayFailed,
  },
  'agent.restart': {
    summary: 'Restart an agent',
    ...onAgent,
    queue: 'agents',
    input: z.object({
      /** The engine's version; if omitted, the agent keeps its version. */
      version: z.string().optional(),
      /** Runs `build` before `start`, even if it has run before. */
      scripts: z.literal('build').optional(),
      /**
       * Recreates the container: the owner requested a restart. A change of tokens or channels only restarts the
       * gateway.
       */
      rebuild: z.literal(true).optional(),
      /** Why the reconciler restarts it; restarts with a reason are counted. */
      reason: z.string().optional(),
    }),
    result: z.object({
      previousProcessId: z.number().nullable(),
      previousVersion: z.string(),
      version: z.string(),
      problems: z.array(z.string()).optional(),
    }),
    cancelable: false,
    retry: tenMinutes,
    timeoutMs: null,
    failureMessage: messages.restartFailed,
  },
  'agent.scripts': {
    summary: "Run an agent's `build` script, then `start`",
    ...onAgent,
    queue: 'agents',
    input: nothing,
    result: nothing,
    cancelable: false,
    retry: tenMinutes,
    timeoutMs: null,
    failureMessage: messages.scriptLaunchFailed,
  },
  'agent.sync': {
    summary: "Commit an agent's workspace, store its tree on IPFS and pin it",
    ...onAgent,
    queue: 'workspaces',
    input: nothing,
    result: z.object({
      lastSync: z.string(),
      snapshotCid: z.string(),
      commitSha: z.string(),
      changeSummary: z.string().nullable(),
      /** Whether anything had changed in the workspace. */
      isNew: z.boolean(),
      /** Omitted files: `<path>: <reason>`. */
      leftOut: z.array(z.string()),
    }),
    cancelable: false,
    retry: tenMinutes,
    timeoutMs: 900_000,
    failureMessage: messages.syncFailed,
  },
  'agent.reset': {
    summary: "Save an agent's workspace, then replace it with a snapshot from its history",
    ...onAgent,
    queue: 'workspaces',
    input: z.object({ snapshotCid: z.string() }),
    result: z.object({
      snapshotCid: z.string(),
      commitSha: z.string(),
      /** Empty folders and permissions that could not be restored, each with the reason. */
      lost: z.array(z.string()).optional(),
    }),
    cancelable: false,
    retry: tenMinutes,
    timeoutMs: 900_000,
    failureMessage: messages.resetFailed,
  },
  'agent.push': {
    summary: "Apply a push to an agent's repository: its manifest, then `build` and `start`",
    ...onAgent,
    queue: 'workspaces',
    input: nothing,
    result: z.object({
      /** Null if there was nothing to apply. */
      commitSha: z.string().nullable(),
      applied: z.array(z.string()).optional(),
      problems: z.array(z.string()).optional(),
    }),
    cancelable: false,
    retry: tenMinutes,
    timeoutMs: 600_000,
    failureMessage: 'Push was not taken over',
  },
  'agent.skills': {
    summary: "Update an agent's skill folders to match its attached skills",
    ...onAgent,
    queue: 'agents',
    input: z.object({
      /** The skills that the request changes; operations from Berth 0.3.0 name none. */
      names: z.array(z.string()).optional(),
      /** Resolutions by skill name, for folders that the agent has changed or created itself. */
      resolutions: z.record(z.string(), z.enum(['replace', 'keep'])).optional(),
    }),
    /** False if the agent was unavailable: it gets the skills when it starts. */
    result: z.object({ applied: z.boolean() }),
    cancelable: false,
    retry: { ...tenMinutes, firstMs: 2000, maxMs: 2000 },
    timeoutMs: null,
    failureMessage: 'The skills could not be written',
  },
  'agent.delete': {
    summary: "Remove a deleted agent's container and volume",
    ...onAgent,
    queue: 'agents',
    input: nothing,
    result: nothing,
    cancelable: false,
    retry: { maxErrors: 1000, firstMs: 500, maxMs: 30_000, forMs: null },
    timeoutMs: null,
    failureMessage: INTERNAL,
  },
  'webhook.deliver': {
    summary: "Send a webhook's due deliveries",
    subject: 'webhook',
    exclusive: true,
    coalesces: true,
    resource: null,
    queue: 'webhooks',
    input: nothing,
    result: nothing,
    cancelable: false,
    retry: { maxErrors: 1000, firstMs: 1000, maxMs: 60_000, forMs: null },
    timeoutMs: null,
    failureMessage: INTERNAL,
  },
} as const satisfies Record<string, Kind>

export type OperationKind = keyof typeof kinds
export const catalog: Readonly<Record<OperationKind, Kind>> = kinds
export const OPERATION_KINDS = Object.keys(kinds) as OperationKind[]

/** Types of the input and the result of a kind. */
export type InputOf<K extends OperationKind> = z.output<(typeof kinds)[K]['input']>
export type ResultOf<K extends OperationKind> = z.output<(typeof kinds)[K]['result']>
/** The result of an operation, if it matches its kind's schema. */
export const readResult = <K extends OperationKind>(kind: K, result: unknown): ResultOf<K> | undefined =>
  catalog[kind].result.safeParse(result).data as ResultOf<K> | undefined
/** The kinds of one queue, or those with one kind of subject. */
export type KindsOf<P extends { queue: QueueName } | { subject: Kind['subject'] }> = {
  [K in OperationKind]: (typeof kinds)[K] extends P ? K : never
}[OperationKind]

export type AgentOperation = KindsOf<{ subject: 'agent' }>

/** The scope to read an operation of this kind, or to cancel it (`write`); undefined for a kind that no client sees. */
export const scopeOf = (kind: OperationKind, access: 'read' | 'write'): Scope | undefined => {
  const { resource } = catalog[kind]
  return resource ? `org:${resource}:${access}` : undefined
}

/** The kinds of operations that a holder of these scopes may read. */
export const readableKinds = (scopes: readonly string[]): OperationKind[] =>
  OPERATION_KINDS.filter((kind) => {
    const scope = scopeOf(kind, 'read')
    return scope !== undefined && grants(scopes, scope)
  })

export const OPERATION_STATES = ['queued', 'running', 'succeeded', 'failed', 'canceled'] as const
export type OperationState = (typeof OPERATION_STATES)[number]

export function isFinished(state: OperationState): boolean {
  return state === 'succeeded' || state === 'failed' || state === 'canceled'
}
