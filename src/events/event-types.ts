/**
 * Every type of event, declared once: what it tells, the shape of its `data`, and who may see it. `docs/events.md` has the
 * table (`npm run docs:events`). The rows are written by triggers (migrations 0032 to 0042) and, of
 * what is no change of a row, by `noteQuotaReached`, `noteLowDisk` and `noteTaskRuns`; a test has
 * each of them write, and compares.
 */
import { z } from 'zod'
import { OPERATION_KINDS, OPERATION_STATES } from '../operations/catalog.ts'

/**
 * Readers of an event in its workspace: those of files, of groups or of agents; for `operation`, readers of what the
 * operation is about; for `domain`, readers of agents or of gateways, by what it leads to; owners whose key has `admin` for
 * `owner`; for `key`, these and the user whose key it is.
 */
export type Audience = 'files' | 'groups' | 'agents' | 'operation' | 'domain' | 'key' | 'owner'

interface Declaration {
  /** A sentence for the documentation. */
  summary: string
  audience: Audience
  /** The value of `resource.type`. */
  resource: string
  /** The meaning of `resource.id`. */
  resourceId: string
  data: z.ZodObject
  /** The `data` of one. */
  example: Record<string, unknown>
}

const network = z.enum(['public', 'private'])
const role = z.enum(['owner', 'member', 'viewer'])

const file = z.object({
  network,
  cid: z.string(),
  name: z.string().nullable(),
  /** As in lists of pin requests, and `pinned` of a file. */
  status: z.string(),
  /** Bytes; null until it is pinned. */
  size: z.number().nullable(),
  mimeType: z.string().nullable(),
  groupId: z.string().nullable(),
})
const aFile = {
  network: 'public',
  cid: 'bafkreifzjut3te7nhyekklss27nh3k72ysco7y32koao5eei66wof36n5e',
  name: 'report.pdf',
  status: 'pinned',
  size: 48_213,
  mimeType: 'application/pdf',
  groupId: null,
}
const ofFile = {
  audience: 'files',
  resource: 'file',
  resourceId: 'the file',
  data: file,
  example: aFile,
} as const
const asked = { ...aFile, status: 'retrieving', size: null, mimeType: null }

const group = z.object({ network, name: z.string(), isPublic: z.boolean() })
const ofGroup = {
  audience: 'groups',
  resource: 'group',
  resourceId: 'the group',
  data: group,
  example: { network: 'public', name: 'invoices', isPublic: false },
} as const

/** Events of an agent's things have `agentId`: `resource=agent:<id>` selects by it, and it lets the agent's own token see them. */
const agentId = z.string()
const agent = z.object({
  agentId,
  name: z.string(),
  status: z.enum(['starting', 'running', 'not_running']),
  statusReason: z.string().nullable(),
})
const anAgent = { agentId: 'x1a2b3c4', name: 'Ada', status: 'running', statusReason: null }
const ofAgent = {
  audience: 'agents',
  resource: 'agent',
  resourceId: 'the agent, as in paths',
  data: agent,
  example: anAgent,
} as const

const ofChannel = {
  audience: 'agents',
  resource: 'channel',
  resourceId: 'the agent and the channel, with `/` between them',
  data: z.object({ agentId, channel: z.string() }),
  example: { agentId: 'x1a2b3c4', channel: 'telegram' },
} as const

const ofKey = {
  audience: 'key',
  resource: 'key',
  resourceId: 'the key',
  data: z.object({ name: z.string(), userId: z.string().nullable(), scopes: z.array(z.string()) }),
  example: {
    name: 'ci',
    userId: '01936a2e-8c1f-7d41-9a53-2f4d1c7b8e90',
    scopes: ['org:files:write'],
  },
} as const

const ofMember = {
  audience: 'owner',
  resource: 'member',
  resourceId: 'the user',
  data: z.object({ role }),
  example: { role: 'member' },
} as const

const ofInvitation = {
  audience: 'owner',
  resource: 'invitation',
  resourceId: 'the invitation',
  data: z.object({ role, invitedBy: z.string(), acceptedBy: z.string().nullable() }),
  example: { role: 'member', invitedBy: '01936a2e-8c1f-7d41-9a53-2f4d1c7b8e90', acceptedBy: null },
} as const

const types = {
  'file.created': { summary: 'A file was uploaded, or a pin of a CID accepted.', ...ofFile },
  'file.updated': {
    summary: 'The name, the metadata or the group of a file was changed; `changed` names which.',
    ...ofFile,
    data: file.extend({ changed: z.array(z.enum(['name', 'keyvalues', 'groupId'])) }),
    example: { ...aFile, changed: ['name'] },
  },
  'file.deleted': { summary: 'A file was deleted, or a pin request withdrawn.', ...ofFile },
  'pin.retrieving': {
    summary: 'The first block of the content of a pin arrived.',
    ...ofFile,
    example: asked,
  },
  'pin.pinned': { summary: 'All content of a pin is kept.', ...ofFile },
  'pin.failed': {
    summary: 'A pin failed for good; `status` says why.',
    ...ofFile,
    example: { ...asked, status: 'expired' },
  },
  'quota.reached': {
    summary:
      'A pin failed, or an upload was refused, since it would go over what the plan lets the workspace keep. Of uploads, one event tells of five minutes.',
    audience: 'files',
    resource: 'workspace',
    resourceId: 'the workspace',
    data: z.object({ by: z.enum(['pin', 'upload']), fileId: z.string().nullable() }),
    example: { by: 'upload', fileId: null },
  },
  'swap.created': {
    summary: 'A CID is served from another one on, or again from itself: `mappedCid` is null.',
    audience: 'files',
    resource: 'swap',
    resourceId: 'this entry of the history',
    data: z.object({ network, cid: z.string(), mappedCid: z.string().nullable() }),
    example: { network: 'public', cid: aFile.cid, mappedCid: null },
  },
  'group.created': { summary: 'A group was made.', ...ofGroup },
  'group.updated': { summary: 'A group was changed.', ...ofGroup },
  'group.deleted': { summary: 'A group was deleted; its files stay.', ...ofGroup },
  'agent.created': {
    summary: 'An agent was made; it is being started.',
    ...ofAgent,
    example: { ...anAgent, status: 'starting' },
  },
  'agent.running': { summary: 'An agent runs.', ...ofAgent },
  'agent.error': {
    summary: 'An agent does not run, and is not started again by itself; `statusReason` says why.',
    ...ofAgent,
    example: { ...anAgent, status: 'not_running', statusReason: 'the gateway was not ready in time' },
  },
  'agent.stopped': {
    summary: 'An agent that ran does not run any more, and is being started again; `statusReason` says why.',
    ...ofAgent,
    example: { ...anAgent, status: 'starting', statusReason: 'its container is paused' },
  },
  'agent.deleted': { summary: 'An agent was deleted.', ...ofAgent },
  'snapshot.created': {
    summary: "An agent's workspace was stored on IPFS.",
    audience: 'agents',
    resource: 'snapshot',
    resourceId: 'the snapshot',
    data: z.object({
      agentId,
      network,
      cid: z.string(),
      commitSha: z.string(),
      changeSummary: z.string().nullable(),
    }),
    example: {
      agentId: 'x1a2b3c4',
      network: 'private',
      cid: 'bafybeihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku',
      commitSha: '9fceb02d0ae598e95dc970b74767f19372d61af8',
      changeSummary: '1 file changed',
    },
  },
  'domain.verified': {
    summary: 'A custom domain was proven, and is served.',
    audience: 'domain',
    resource: 'domain',
    resourceId: 'the domain',
    data: z.object({
      /** Null where it leads to a gateway. */
      agentId: agentId.nullable(),
      customDomain: z.string(),
    }),
    example: { agentId: 'x1a2b3c4', customDomain: 'ada.example.com' },
  },
  'domain.failed': {
    summary:
      'A custom domain was not proven within two weeks, and is not looked up any more (`unproven`), or another one has proven it (`taken`).',
    audience: 'domain',
    resource: 'domain',
    resourceId: 'the domain',
    data: z.object({
      agentId: agentId.nullable(),
      customDomain: z.string(),
      reason: z.enum(['unproven', 'taken']),
    }),
    example: { agentId: 'x1a2b3c4', customDomain: 'ada.example.com', reason: 'unproven' },
  },
  'channel.created': { summary: 'A channel was connected to an agent.', ...ofChannel },
  'channel.updated': { summary: 'The settings or tokens of a channel were changed.', ...ofChannel },
  'channel.deleted': { summary: 'A channel was taken from an agent.', ...ofChannel },
  'task.ran': {
    summary: 'A run of a scheduled task has ended, by its schedule or by hand.',
    audience: 'agents',
    resource: 'task',
    resourceId: 'the agent and the task, with `/` between them',
    data: z.object({
      agentId,
      taskId: z.string(),
      /** Null for a task that is gone, as one that runs once is after its run. */
      name: z.string().nullable(),
      runId: z.string(),
      status: z.enum(['ok', 'error', 'skipped']),
      startedAt: z.string(),
      durationMs: z.number().nullable(),
      error: z.string().nullable(),
    }),
    example: {
      agentId: 'x1a2b3c4',
      taskId: 'c16e2a5d-7d81-430d-a96b-8dfb5b60c277',
      name: 'Morning report',
      runId: 'manual:c16e2a5d-7d81-430d-a96b-8dfb5b60c277:1795590000000:1',
      status: 'ok',
      startedAt: '2026-11-25T08:00:00.000Z',
      durationMs: 4210,
      error: null,
    },
  },
  'operation.progress': {
    summary: 'An operation got further, or ended. Of a pin, progress is told twice a second at most.',
    audience: 'operation',
    resource: 'operation',
    resourceId: 'the operation',
    data: z.object({
      kind: z.enum(OPERATION_KINDS),
      /** The agent that it is about, where it is about one. */
      agentId: agentId.nullable(),
      /** The id of its file, agent or webhook, as in `/v0/operations`. */
      target: z.string(),
      state: z.enum(OPERATION_STATES),
      step: z.string().nullable(),
      progress: z.record(z.string(), z.unknown()).nullable(),
      errorCode: z.string().nullable(),
    }),
    example: {
      kind: 'agent.restart',
      agentId: 'x1a2b3c4',
      target: 'x1a2b3c4',
      state: 'running',
      step: 'gateway',
      progress: null,
      errorCode: null,
    },
  },
  'key.created': { summary: 'An API key was made.', ...ofKey },
  'key.revoked': { summary: 'An API key was revoked.', ...ofKey },
  'member.added': { summary: 'A user became a member of the workspace.', ...ofMember },
  'member.updated': { summary: 'A member got another role.', ...ofMember },
  'member.removed': { summary: 'A user is not a member any more.', ...ofMember },
  'invitation.created': { summary: 'Somebody was invited.', ...ofInvitation },
  'invitation.accepted': {
    summary: 'An invitation was accepted.',
    ...ofInvitation,
    example: { ...ofInvitation.example, acceptedBy: '01936a2f-11aa-7bb2-8c3d-4e5f60718293' },
  },
  'invitation.revoked': { summary: 'An invitation was taken back.', ...ofInvitation },
  'disk.low': {
    summary:
      'A disk of the instance has little room, or (`down`) is at its reserve and takes nothing new. In the workspaces that admins of the instance own; once a day.',
    audience: 'owner',
    resource: 'disk',
    resourceId: 'the machine and the first of Berth’s folders on the disk',
    data: z.object({
      host: z.string(),
      disk: z.string(),
      state: z.enum(['degraded', 'down']),
      freeBytes: z.number(),
      sizeBytes: z.number(),
    }),
    example: {
      host: 'berth-1',
      disk: 'data',
      state: 'degraded',
      freeBytes: 9_663_676_416,
      sizeBytes: 214_748_364_800,
    },
  },
  'webhook.disabled': {
    summary: 'A webhook is told of nothing more; `reason` says whether a request or its target is why.',
    audience: 'owner',
    resource: 'webhook',
    resourceId: 'the webhook',
    data: z.object({ url: z.string(), reason: z.enum(['client', 'failing', 'gone', 'behind']) }),
    example: { url: 'https://example.com/berth', reason: 'failing' },
  },
} as const satisfies Record<string, Declaration>

export type EventType = keyof typeof types
export const eventTypes: Readonly<Record<EventType, Declaration>> = types
export const EVENT_TYPES = Object.keys(types) as EventType[]
