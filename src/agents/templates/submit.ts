/** Making, changing and archiving the templates of a workspace. */
import { CID } from 'multiformats/cid'
import type pg from 'pg'
import type { Principal } from '../../accounts/authenticator.ts'
import { crashPoint } from '../../crash-point.ts'
import { isUniqueViolation } from '../../db/errors.ts'
import { transaction } from '../../db/pool.ts'
import { ApiError, badRequest, contractError, forbidden } from '../../errors.ts'
import { holdContent, releaseContent } from '../../files/held-content.ts'
import type { Network } from '../../storage/port.ts'
import type { Agent } from '../agent.ts'
import type { AgentServices } from '../services.ts'
import { bundledTemplates } from './bundled.ts'
import type { Described } from './describe.ts'
import type { Inspected } from './inspect.ts'
import type { NewTemplate, TemplateChange } from './schema.ts'
import { requireTemplate } from './store.ts'
import { newTemplateId, type Template, type TemplateDetails } from './template.ts'

type Services = Pick<AgentServices, 'pool' | 'storages'>

/**
 * Makes a template of a snapshot. What the body says counts more than the manifest.
 * @throws ApiError 400 for a snapshot that cannot be a template, or without a description; 409 for a slug that another
 *   template of the workspace has, or one that ships with Berth; StorageError.
 */
export async function makeTemplate(
  services: Services,
  { workspaceId, userId }: Principal,
  { agent, inspected, told }: { agent: Agent; inspected: Inspected; told: NewTemplate },
): Promise<Template> {
  const { snapshot } = inspected
  const described = requireFit(inspected.described)
  const name = told.name ?? told.nameOverride ?? described.name
  const slug = told.slug ?? told.slugOverride ?? described.slug ?? slugOf(name)
  if (!slug) throw badRequest('slug: must be given, since none can be made of the name')
  const details = merge(
    { ...described.details, openclawVersion: agent.engineVersion, version: 1, commitSha: snapshot.commitSha },
    told,
  )
  if (!details.description) throw badRequest('description: must be given, since the manifest has none')
  const id = await write(services, slug, async (client) => {
    const { rows } = await client.query(
      `INSERT INTO template (id, workspace_id, user_id, slug, name, details, network, snapshot_cid, executables)
       VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) RETURNING id`,
      [
        newTemplateId(),
        workspaceId,
        userId,
        slug,
        name,
        toJson(details),
        snapshot.network,
        snapshot.cid,
        snapshot.executables,
      ],
    )
    await holdContent(client, services.storages[snapshot.network], CID.parse(snapshot.cid))
    return rows[0].id
  })
  return requireTemplate(services.pool, workspaceId, id, 'id')
}

/**
 * Changes a template of the workspace. With a new snapshot, all that follows from its files is new as well; what people
 * read stays where the body does not change it.
 * @throws ApiError as {@link makeTemplate}; 403 for one that ships with Berth, 404.
 */
export async function changeTemplate(
  services: Services,
  { workspaceId }: Principal,
  id: string,
  { told, source }: { told: TemplateChange; source: { agent: Agent; inspected: Inspected } | undefined },
): Promise<Template> {
  const described = source && requireFit(source.inspected.described)
  const snapshot = source?.inspected.snapshot
  const slug = told.slug ?? told.slugOverride
  await write(services, slug, async (client) => {
    const before = await lockOwn(client, workspaceId, id)
    const { name, stored, snapshotCid } = before
    const renewed = source && described && renew(before.details, described, source)
    await client.query(
      `UPDATE template SET slug = $2, name = $3, details = $4, network = $5, snapshot_cid = $6, executables = $7,
         updated_at = clock_timestamp() WHERE id = $1`,
      [
        id,
        slug ?? before.slug,
        told.name ?? told.nameOverride ?? name,
        toJson(merge(renewed ?? before.details, told)),
        snapshot?.network ?? stored.network,
        snapshot?.cid ?? snapshotCid,
        snapshot?.executables ?? stored.executables,
      ],
    )
    if (!snapshot) return
    await holdContent(client, services.storages[snapshot.network], CID.parse(snapshot.cid))
    if (snapshot.cid !== snapshotCid || snapshot.network !== stored.network)
      await releaseContent(client, [{ workspaceId, network: stored.network, cid: snapshotCid }])
  })
  return requireTemplate(services.pool, workspaceId, id, 'id')
}

/**
 * Archives a template of the workspace: nobody finds it any more, its slug is free, and agents that were made from it
 * go on. What no agent needs any more of all that was archived is forgotten.
 * @throws ApiError 403 for one that ships with Berth, 404.
 */
export async function archiveTemplate(
  { pool }: Services,
  { workspaceId }: Principal,
  id: string,
): Promise<Template> {
  return transaction(pool, async (client) => {
    const template = await lockOwn(client, workspaceId, id)
    await client.query('UPDATE template SET archived_at = now() WHERE id = $1', [id])
    await forgetArchived(client, workspaceId)
    crashPoint('before-commit')
    return template
  })
}

/**
 * Forgets the archived templates of a workspace that no agent was made from which is still there, and has their content
 * released. No agent can be made from these any more, so none comes to need one meanwhile.
 * @param client in a transaction.
 */
export async function forgetArchived(client: pg.PoolClient, workspaceId: string): Promise<void> {
  const { rows } = await client.query<{ network: Network; cid: string }>(
    `DELETE FROM template WHERE id IN (
       SELECT id FROM template WHERE workspace_id = $1 AND archived_at IS NOT NULL
         AND NOT EXISTS (SELECT FROM agent WHERE template_id = template.id AND deleted_at IS NULL)
       ORDER BY id FOR UPDATE SKIP LOCKED)
     RETURNING network, snapshot_cid AS cid`,
    [workspaceId],
  )
  await releaseContent(
    client,
    rows.map((content) => ({ workspaceId, ...content })),
  )
}

/** @throws ApiError 400 with the first fault; all of them are in `Error-Detail`. */
function requireFit(described: Described | { errors: string[] }): Described {
  if (!('errors' in described)) return described
  const { errors } = described
  throw contractError(400, 'invalid_template', `Validation failed: ${errors[0]}`, errors.join('; '))
}

/** Runs a change in a transaction. @throws ApiError 409 where it comes to a slug that is taken. */
async function write<T>(
  { pool }: Services,
  slug: string | undefined,
  change: (client: pg.PoolClient) => Promise<T>,
): Promise<T> {
  const taken = () => new ApiError(409, 'taken', 'slug: is taken')
  if (slug && (await bundledTemplates()).some((template) => template.slug === slug)) throw taken()
  try {
    return await transaction(pool, async (client) => {
      const result = await change(client)
      crashPoint('before-commit')
      return result
    })
  } catch (error) {
    throw isUniqueViolation(error, 'template_slug') ? taken() : error
  }
}

type OwnTemplate = Template & { stored: NonNullable<Template['stored']> }

/** A template of the workspace's own, which nobody else changes until the end of the transaction. */
async function lockOwn(client: pg.PoolClient, workspaceId: string, id: string): Promise<OwnTemplate> {
  const template = await requireTemplate(client, workspaceId, id, 'id', 'FOR UPDATE')
  const { stored } = template
  if (!stored) throw forbidden('The templates that ship with Berth cannot be changed')
  return { ...template, stored }
}

/** What people read of a template: the body's word where it has one. */
function merge(details: TemplateDetails, told: NewTemplate | TemplateChange): TemplateDetails {
  const { description, longDescription, category, tags, authorName, authorUrl, authorLogoUrl } = told
  const given = { description, longDescription, category, tags, authorName, authorUrl, authorLogoUrl }
  return {
    ...details,
    ...Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)),
  }
}

/** What follows from the files of a template, of a new snapshot. */
function renew(
  before: TemplateDetails,
  { details }: Described,
  { agent, inspected }: { agent: Agent; inspected: Inspected },
): TemplateDetails {
  const { requiredSecrets, includedSkillCids, defaultVibe, defaultEmoji, longDescription } = details
  return {
    ...before,
    requiredSecrets,
    includedSkillCids,
    defaultVibe,
    defaultEmoji,
    longDescription,
    openclawVersion: agent.engineVersion,
    version: before.version + 1,
    commitSha: inspected.snapshot.commitSha,
  }
}

/** Half characters of a manifest would be refused by PostgreSQL. */
const toJson = (details: TemplateDetails): string =>
  JSON.stringify(details, (_, value) => (typeof value === 'string' ? value.toWellFormed() : value))

const slugOf = (name: string): string =>
  name
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, 100)
    .replace(/^-|-$/g, '')
