/**
 * Every type of event, declared once: its meaning, the shape of its `data`, and who may see it. `docs/events.md` has
 * the table (`npm run docs:events`). Triggers write the rows (migrations 0032 to 0054). For events that are not row
 * changes, `noteQuotaReached`, `noteLowDisk`, `noteTaskRuns` and `noteModelBudgets` do. A test makes each of them write
 * an event, and compares.
 */
import { z } from 'zod'
import { OPERATION_KINDS, OPERATION_STATES } from '../operations/catalog.ts'

/**
 * The members of a workspace who may read an event. `files`, `groups` and `agents`: readers of these. `operation`:
 * readers of the operation's subject. `domain`: readers of agents or of gateways, depending on the domain's target.
 * `owner`: owners whose key has `admin`. `key`: these owners and the key's user.
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
  /** An example of `data`. */
  example: Record<string, unknown>
}

const network = z.enum(['public', 'private'])
const role = z.enum(['owner', 'member', 'viewer'])

const file = z.object({
  network,
  cid: z.string(),
  name: z.string().nullable(),
  /** Same values as in lists of pin requests, and `pinned` for a file. */
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

/**
 * Events of things that belong to an agent have `agentId`: `resource=agent:<id>` selects by it, and the agent's own
 * token may see them because of it.
 */
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

const ofPause = {
  ...ofAgent,
  /** `client`: by a request. */
  data: z.object({ agentId, name: z.string(), reason: z.enum(['client']) }),
  example: { agentId: 'x1a2b3c4', name: 'Ada', reason: 'client' },
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
  'file.created': { summary: 'A file was uploaded, or a pin by CID was accepted.', ...ofFile },
  'file.updated': {
    summary: 'A file’s name, metadata or group was changed; `changed` lists which.',
    ...ofFile,
    data: file.extend({ changed: z.array(z.enum(['name', 'keyvalues', 'groupId'])) }),
    example: { ...aFile, changed: ['name'] },
  },
  'file.deleted': { summary: 'A file was deleted, or a pin request was withdrawn.', ...ofFile },
  'pin.retrieving': {
    summary: 'The first block of a pin’s content arrived.',
    ...ofFile,
    example: asked,
  },
  'pin.pinned': { summary: 'All of a pin’s content is stored.', ...ofFile },
  'pin.failed': {
    summary: 'A pin failed permanently; `status` gives the reason.',
    ...ofFile,
    example: { ...asked, status: 'expired' },
  },
  'quota.reached': {
    summary:
      'A pin failed or an upload was rejected, because it would exceed the plan’s storage limit. For uploads, there is at most one event every five minutes.',
    audience: 'files',
    resource: 'workspace',
    resourceId: 'the workspace',
    data: z.object({ by: z.enum(['pin', 'upload']), fileId: z.string().nullable() }),
    example: { by: 'upload', fileId: null },
  },
  'swap.created': {
    summary:
      'A CID was swapped for another one, or (`mappedCid` is null) is served from its own content again.',
    audience: 'files',
    resource: 'swap',
    resourceId: 'this entry of the history',
    data: z.object({ network, cid: z.string(), mappedCid: z.string().nullable() }),
    example: { network: 'public', cid: aFile.cid, mappedCid: null },
  },
  'group.created': { summary: 'A group was created.', ...ofGroup },
  'group.updated': { summary: 'A group was changed.', ...ofGroup },
  'group.deleted': { summary: 'A group was deleted; its files stay.', ...ofGroup },
  'agent.created': {
    summary: 'An agent was created and is starting; `forkedFrom` names the agent that it is a fork of.',
    ...ofAgent,
    data: agent.extend({ forkedFrom: z.string().nullable() }),
    example: { ...anAgent, status: 'starting', forkedFrom: null },
  },
  'agent.starting': {
    summary:
      'An agent is starting, restarting or changing its version; `statusReason` gives the reason, unless its owner asked for it.',
    ...ofAgent,
    example: { ...anAgent, status: 'starting' },
  },
  'agent.running': { summary: 'An agent is running.', ...ofAgent },
  'agent.error': {
    summary: 'An agent has stopped and will not restart by itself; `statusReason` gives the reason.',
    ...ofAgent,
    example: { ...anAgent, status: 'not_running', statusReason: 'the gateway was not ready in time' },
  },
  'agent.stopped': {
    summary: 'A running agent has stopped and is being restarted; `statusReason` gives the reason.',
    ...ofAgent,
    example: { ...anAgent, status: 'starting', statusReason: 'its container is paused' },
  },
  'agent.deleted': { summary: 'An agent was deleted.', ...ofAgent },
  'egress.denied': {
    summary: 'The egress policy of an agent has denied a host, for the first time on a day in UTC.',
    audience: 'agents',
    resource: 'agent',
    resourceId: 'the agent',
    data: z.object({ agentId, name: z.string(), host: z.string() }),
    example: { agentId: 'x1a2b3c4', name: 'Researcher', host: 'collector.example.net' },
  },
  'model.budget.reached': {
    summary:
      'The agents of a workspace, or one of them, have spent 50, 80 or 100 % of a budget. `reason` is the code of refusals from now on; null below 100 %.',
    audience: 'agents',
    resource: 'budget',
    resourceId: 'the agent; or the workspace for its own budget and for its plan',
    data: z.object({
      /** Null if it limits the whole workspace. */
      agentId: agentId.nullable(),
      scope: z.enum(['agent', 'workspace', 'plan']),
      period: z.enum(['day', 'month']),
      unit: z.enum(['usd', 'tokens']),
      percent: z.union([z.literal(50), z.literal(80), z.literal(100)]),
      /** In the unit; dollars have decimals. */
      limit: z.string(),
      spent: z.string(),
      reason: z.enum(['budget_exceeded']).nullable(),
      resetsAt: z.string(),
    }),
    example: {
      agentId: 'x1a2b3c4',
      scope: 'agent',
      period: 'month',
      unit: 'usd',
      percent: 80,
      limit: '5.00',
      spent: '4.0217',
      reason: null,
      resetsAt: '2026-12-01T00:00:00.000Z',
    },
  },
  'model.paused': { summary: 'An agent may no longer call models.', ...ofPause },
  'model.resumed': { summary: 'An agent may call models again.', ...ofPause },
  'snapshot.created': {
    summary: "An agent's workspace was saved to IPFS.",
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
    summary: 'A custom domain was verified and is being served.',
    audience: 'domain',
    resource: 'domain',
    resourceId: 'the domain',
    data: z.object({
      /** Null if it leads to a gateway. */
      agentId: agentId.nullable(),
      customDomain: z.string(),
    }),
    example: { agentId: 'x1a2b3c4', customDomain: 'ada.example.com' },
  },
  'domain.failed': {
    summary:
      'A custom domain was not proven within two weeks and is no longer checked (`unproven`), or someone else has proven it (`taken`).',
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
  'channel.deleted': { summary: 'A channel was disconnected from an agent.', ...ofChannel },
  'task.ran': {
    summary: 'A run of a scheduled task has ended, whether scheduled or started manually.',
    audience: 'agents',
    resource: 'task',
    resourceId: 'the agent and the task, with `/` between them',
    data: z.object({
      agentId,
      taskId: z.string(),
      /** Null for a deleted task, such as a one-time task after its run. */
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
    summary: 'An operation made progress or ended. A pin’s progress is reported at most twice a second.',
    audience: 'operation',
    resource: 'operation',
    resourceId: 'the operation',
    data: z.object({
      kind: z.enum(OPERATION_KINDS),
      /** The agent that it is about, if any. */
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
  'key.created': { summary: 'An API key was created.', ...ofKey },
  'key.revoked': { summary: 'An API key was revoked.', ...ofKey },
  'member.added': { summary: 'A user became a member of the workspace.', ...ofMember },
  'member.updated': { summary: 'A member’s role was changed.', ...ofMember },
  'member.removed': { summary: 'A user is no longer a member.', ...ofMember },
  'invitation.created': { summary: 'Someone was invited.', ...ofInvitation },
  'invitation.accepted': {
    summary: 'An invitation was accepted.',
    ...ofInvitation,
    example: { ...ofInvitation.example, acceptedBy: '01936a2f-11aa-7bb2-8c3d-4e5f60718293' },
  },
  'invitation.revoked': { summary: 'An invitation was revoked.', ...ofInvitation },
  'disk.low': {
    summary:
      'A disk of the instance is low on space, or (`down`) is at its reserve and accepts nothing new. Sent to the workspaces that admins of the instance own, once a day.',
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
    summary: 'A webhook was disabled; `reason` tells whether by a request or because of its target.',
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
