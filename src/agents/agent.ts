/** The agent's row, and how to find it. */

import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import type { Queryable } from '../db/pool.ts'
import type { Prisma, PrismaClient } from '../db/prisma.ts'
import {
  type AgentRow,
  findByAgentId,
  findByRowId,
  lockAgentRow,
  type Protocol,
} from '../db/statements/agents.ts'
import { type ApiError, contractError, messages, notFound } from '../errors.ts'
import { agentId, contentCid, engineVersion, like, timestamp, userId, withExample } from '../http/fields.ts'
import { grants, type Principal } from '../http/principal.ts'
import { text, visibleText } from '../http/shapes.ts'

/** A live agent. */
export type Agent = AgentRow
export type AgentStatusName = Agent['status']

/** A live agent of any workspace, by the id used in paths. */
export const findAgent = (db: Queryable, agentId: string): Promise<Agent | undefined> =>
  findByAgentId.first(db, agentId)

/** A live agent by the id of its row. */
export const findAgentById = (db: Queryable, id: string): Promise<Agent | undefined> =>
  findByRowId.first(db, id)

/**
 * Locks the agent's row, so that others who change the agent or its resources wait for the transaction to end.
 * @throws ApiError 404 if it was deleted.
 */
export async function lockAgent(db: Queryable, { id }: Pick<Agent, 'id'>): Promise<void> {
  if (!(await lockAgentRow.first(db, id))) throw notFound(messages.noAgent)
}

/** Notifies the web processes that an agent's token, domains or routes have changed, or that it was deleted. */
export const notifyAgent = (db: Prisma.TransactionClient, { agentId }: Pick<Agent, 'agentId'>) =>
  db.$executeRaw`SELECT pg_notify('berth_agent', ${agentId})`

/**
 * The files of an agent's newest snapshot, one line `<size> <path>` each. It is long, so only callers that show it
 * should read it.
 */
export async function readFileManifest(
  prisma: PrismaClient,
  { id }: Pick<Agent, 'id'>,
): Promise<string | null> {
  const row = await prisma.agent.findUnique({ where: { id }, select: { fileManifest: true } })
  return row?.fileManifest ?? null
}

export const newGatewayToken = (): string => randomUUID()

/**
 * Characters that a name must not have. A name is shown in pages and terminals, written into the agent's files and put
 * into its environment. These characters would break a line or markup there, or change the direction of the surrounding
 * text.
 */
const BANNED = /[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069<>"`\\]/u

const name = withExample(visibleText(100), 'Librarian')
  .refine(
    (value) => !BANNED.test(value),
    'must not contain control characters, line breaks, characters that change the text direction, or any of < > " ` \\',
  )
  .meta({ format: 'agent-name' })

/** Protocols besides OpenAI's in which other agents may talk to an agent, on its own host. */
const PROTOCOLS = ['a2a', 'mcp'] as const satisfies readonly Protocol[]

export type { Protocol }

const protocols = z
  .array(z.enum(PROTOCOLS, `must be one of ${PROTOCOLS.join(', ')}`))
  .max(PROTOCOLS.length, `must have at most ${PROTOCOLS.length} items`)
  .refine((names) => new Set(names).size === names.length, 'must not name one twice')
  .describe('Protocols in which other agents may talk to it on its own host: `a2a`, `mcp`. Default: none.')
  .meta({ uniqueItems: true })

/**
 * Fields in which the owner describes an agent. The same rules apply to a new agent and to a change; each field is a
 * column.
 */
export const names = z.object({
  name: name.describe(
    'At most 100 characters, without control characters, line breaks, characters that change the text direction, and < > " ` \\.',
  ),
  description: withExample(text(10_000), 'Keeps the catalogue.').nullable(),
  vibe: text(200).nullable(),
  emoji: text(32).nullable(),
  protocols: withExample(protocols, ['a2a']),
})
type Names = z.output<typeof names>
export const NAMES = names.keyof().options

/** The given fields, including nulls. */
export const givenNames = (from: { [name in keyof Names]?: Names[name] | undefined }): Partial<Names> =>
  Object.fromEntries(NAMES.filter((name) => from[name] !== undefined).map((name) => [name, from[name]]))

const gatewayToken = like('5b0c1f0e-6c1d-4f0b-9a53-0c9f2f6d1a77')

/** The agent as clients see it. */
export const agentRecord = z.object({
  agentId,
  userId,
  ...names.shape,
  gatewayToken: gatewayToken
    .nullable()
    .describe(
      'Opens the agent’s own host and its git repository. Null for read-only callers and for platform tokens.',
    ),
  createdAt: timestamp,
  updatedAt: timestamp,
  status: withExample(z.enum(['starting', 'running', 'not_running']), 'running'),
  statusReason: z
    .string()
    .nullable()
    .describe(
      'Why the agent does not run or restarted by itself, or what a running agent lacks, such as a model.',
    ),
  lastSync: z
    .string()
    .nullable()
    .describe('When its workspace was last saved as its newest snapshot, or found unchanged since.'),
  snapshotCid: contentCid.nullable().describe('Its newest snapshot.'),
  fileManifest: z
    .string()
    .nullable()
    .describe(
      'The files of its newest snapshot, one line `<size> <path>` each, at most 64 KiB. If there are ' +
        'more, the last line begins with `…`. Null except in responses for a single agent.',
    ),
  snapshotsUpdatedAt: z.string().nullable().describe('When its newest snapshot was taken.'),
  engine: like('openclaw'),
  agentVersion: engineVersion.describe('Version of the engine.'),
  forkedFrom: agentId
    .nullable()
    .describe('The agent that it is a fork of, which may be deleted. Null for other agents.'),
})
export type AgentRecord = z.output<typeof agentRecord>
const FIELDS = agentRecord.keyof().options

/**
 * The agent as `reader` may see it. A gateway token lets its holder change the agent, so read-only keys do not get it.
 * Neither do platform tokens, which expire within the hour.
 * @param fileManifest see {@link readFileManifest}.
 */
export function toRecord(
  agent: Agent,
  reader: Pick<Principal, 'role' | 'scopes' | 'agent'>,
  fileManifest: string | null = null,
): AgentRecord {
  const mayWrite = reader.role !== 'viewer' && grants(reader.scopes, 'org:agents:write')
  const seesToken = mayWrite && reader.agent?.by !== 'platform'
  const known: AgentRecord = {
    ...agent,
    gatewayToken: seesToken ? agent.gatewayToken : null,
    fileManifest,
    agentVersion: agent.engineVersion,
  }
  return Object.fromEntries(FIELDS.map((field) => [field, known[field]])) as AgentRecord
}

/** The agents that {@link stillAttached} names, among those that have a secret or a skill. */
export const NAMED_AGENTS = {
  orderBy: { agentId: 'asc' },
  take: 20,
  select: { agent: { select: { agentId: true, name: true } } },
} as const

/** The refusal to delete a secret or a skill that agents use. */
export function stillAttached(
  thing: 'secret' | 'skill',
  attached: { agent: { agentId: string; name: string } }[],
): ApiError {
  const agents = attached.map(({ agent }) => `${agent.name} (${agent.agentId})`).join(', ')
  return contractError(
    409,
    `${thing}_attached`,
    `The ${thing} is attached to an agent`,
    `attached to ${agents}`,
  )
}
