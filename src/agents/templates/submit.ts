/** Creates, changes and archives the templates of a workspace. */

import { CID } from 'multiformats/cid'
import { isUniqueViolation } from '../../db/database-errors.ts'
import type { Queryable } from '../../db/pool.ts'
import { inTransaction, type Transaction } from '../../db/prisma.ts'
import { deleteArchived } from '../../db/statements/templates.ts'
import { ApiError, badRequest, contractError, forbidden } from '../../errors.ts'
import { ensurePinned, releaseContent } from '../../files/held-content.ts'
import type { Principal } from '../../http/principal.ts'
import { crashPoint } from '../../lib/crash-point.ts'
import type { AgentServices } from '../agent-route.ts'
import { bundledTemplates } from './bundled.ts'
import type { Described } from './describe.ts'
import type { StoredFolder, TemplateSource } from './source.ts'
import { newTemplateId, type Template, type TemplateDetails } from './template.ts'
import type { NewTemplate, TemplateChange } from './template-schema.ts'
import { requireTemplate } from './template-store.ts'

type Services = Pick<AgentServices, 'pool' | 'prisma' | 'storages'>

/**
 * Creates a template. The body's fields take precedence over the manifest's.
 * @throws ApiError 400 for a source that cannot be a template, or without a description; 409 for a slug that another
 *   template of the workspace or a template that ships with Berth has; StorageError.
 */
export async function makeTemplate(
  services: Services,
  { workspaceId, userId }: Principal,
  source: TemplateSource,
  given: NewTemplate,
): Promise<Template> {
  const described = requireFit(source.described)
  const name = given.name ?? given.nameOverride ?? described.name
  const slug = given.slug ?? given.slugOverride ?? described.slug ?? slugOf(name)
  if (!slug) throw badRequest('slug: must be given, since none can be derived from the name')
  const { engineVersion: openclawVersion, commitSha, git } = source
  const details = merge({ ...described.details, openclawVersion, version: 1, commitSha, git }, given)
  if (!details.description) throw badRequest('description: must be given, since the manifest has none')
  const id = newTemplateId()
  await write(services, { workspaceId, slug, source }, async (tx, folder) => {
    const { network, cid, executables } = folder as StoredFolder
    const made = { id, workspaceId, userId, slug, name, details: toJson(details) }
    await tx.template.create({ data: { ...made, network, snapshotCid: cid, executables } })
    await ensurePinned(tx, services.storages[network], CID.parse(cid))
  })
  return requireTemplate(services.pool, workspaceId, id, 'id')
}

/**
 * Changes a template of the workspace. New files update all columns derived from them; texts for people stay unless the
 * body changes them.
 * @throws ApiError as {@link makeTemplate}; 403 for one that ships with Berth, 404.
 */
export async function changeTemplate(
  services: Services,
  { workspaceId }: Principal,
  id: string,
  { given, source }: { given: TemplateChange; source: TemplateSource | undefined },
): Promise<Template> {
  const described = source && requireFit(source.described)
  const slug = given.slug ?? given.slugOverride
  await write(services, { workspaceId, slug, source }, async (tx, folder) => {
    const before = await lockOwn(tx, workspaceId, id)
    const { name, stored, snapshotCid } = before
    const renewed = source && described && renew(before.details, described, source)
    await tx.template.update({
      where: { id },
      data: {
        slug: slug ?? before.slug,
        name: given.name ?? given.nameOverride ?? name,
        details: toJson(merge(renewed ?? before.details, given)),
        network: folder?.network ?? stored.network,
        snapshotCid: folder?.cid ?? snapshotCid,
        executables: folder?.executables ?? stored.executables,
        updatedAt: new Date(),
      },
    })
    if (!folder) return
    await ensurePinned(tx, services.storages[folder.network], CID.parse(folder.cid))
    if (folder.cid !== snapshotCid || folder.network !== stored.network)
      await releaseContent(tx, [{ workspaceId, network: stored.network, cid: snapshotCid }])
  })
  return requireTemplate(services.pool, workspaceId, id, 'id')
}

/**
 * Archives a template of the workspace: it is no longer found, its slug is free, and agents made from it keep running.
 * Also deletes archived templates that no agent needs.
 * @throws ApiError 403 for one that ships with Berth, 404.
 */
export async function archiveTemplate(
  { prisma }: Services,
  { workspaceId }: Principal,
  id: string,
): Promise<Template> {
  return inTransaction(prisma, async (tx) => {
    const template = await lockOwn(tx, workspaceId, id)
    await tx.template.update({ where: { id }, data: { archivedAt: new Date() } })
    await forgetArchived(tx, workspaceId)
    crashPoint('before-commit')
    return template
  })
}

/**
 * Deletes the archived templates of a workspace that have no remaining agents, and releases their content. Archived
 * templates cannot be used for new agents, so none becomes needed in between.
 */
export async function forgetArchived(db: Queryable, workspaceId: string): Promise<void> {
  const { rows } = await deleteArchived.run(db, workspaceId)
  const released = rows.map((content) => ({ workspaceId, ...content }))
  await releaseContent(db, released)
}

/** @throws ApiError 400 with the first fault; `Error-Detail` lists all of them. */
function requireFit(described: Described | { errors: string[] }): Described {
  if (!('errors' in described)) return described
  const { errors } = described
  throw contractError(400, 'invalid_template', `Validation failed: ${errors[0]}`, errors.join('; '))
}

/**
 * Stores the files of the source, and runs a change in a transaction.
 * @throws ApiError 409 if a slug is taken.
 */
async function write(
  { pool, prisma }: Services,
  { workspaceId, slug, source }: Written,
  change: (tx: Transaction, folder: StoredFolder | undefined) => Promise<void>,
): Promise<void> {
  const taken = () => new ApiError(409, 'taken', 'slug: is taken')
  if (slug && (await bundledTemplates()).some((template) => template.slug === slug)) throw taken()
  const folder = await source?.store()
  try {
    await inTransaction(prisma, async (tx) => {
      await change(tx, folder)
      crashPoint('before-commit')
    })
  } catch (error) {
    // Then no row keeps the stored content, unless another row has the same content.
    if (folder && source?.git) await releaseContent(pool, [{ workspaceId, ...folder }])
    throw isUniqueViolation(error, 'template_slug') ? taken() : error
  }
}

interface Written {
  workspaceId: string
  slug: string | undefined
  source: TemplateSource | undefined
}

type OwnTemplate = Template & { stored: NonNullable<Template['stored']> }

/** A template that the workspace owns, locked until the end of the transaction. */
async function lockOwn(tx: Transaction, workspaceId: string, id: string): Promise<OwnTemplate> {
  const template = await requireTemplate(tx, workspaceId, id, 'id', 'change')
  const { stored } = template
  if (!stored) throw forbidden('The templates that ship with Berth cannot be changed')
  return { ...template, stored }
}

/** Applies the texts of a request's body over those of a template. */
function merge(details: TemplateDetails, given: NewTemplate | TemplateChange): TemplateDetails {
  const { description, longDescription, category, tags, authorName, authorUrl, authorLogoUrl } = given
  const texts = { description, longDescription, category, tags, authorName, authorUrl, authorLogoUrl }
  return {
    ...details,
    ...Object.fromEntries(Object.entries(texts).filter(([, value]) => value !== undefined)),
  }
}

/** The columns derived from the files of a template. */
function renew(
  before: TemplateDetails,
  { details }: Described,
  { engineVersion: openclawVersion, commitSha, git }: TemplateSource,
): TemplateDetails {
  const { requiredSecrets, includedSkillCids, defaultVibe, defaultEmoji, longDescription } = details
  return {
    ...before,
    requiredSecrets,
    includedSkillCids,
    defaultVibe,
    defaultEmoji,
    longDescription,
    openclawVersion,
    version: before.version + 1,
    commitSha,
    git,
  }
}

/** PostgreSQL would reject a manifest's unpaired surrogates. */
const toJson = (details: TemplateDetails): TemplateDetails =>
  JSON.parse(
    JSON.stringify(details, (_, value) => (typeof value === 'string' ? value.toWellFormed() : value)),
  )

const slugOf = (name: string): string =>
  name
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, 100)
    .replace(/^-|-$/g, '')
