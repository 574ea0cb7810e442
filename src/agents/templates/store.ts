/** Reading templates: the rows of a workspace, and those that ship with Berth. Nobody sees the rows of others. */
import type { Queryable } from '../../db/pool.ts'
import { notFound } from '../../errors.ts'
import { isoMillis } from '../agent.ts'
import { bundledTemplates } from './bundled.ts'
import { TEMPLATE_ID, TEMPLATE_SLUG, type Template } from './template.ts'

const COLUMNS = `template.id, template.slug, template.name, template.details, template.snapshot_cid AS "snapshotCid",
  json_build_object('network', template.network, 'executables', template.executables) AS stored,
  template.user_id AS "submittedBy", ${isoMillis('template.created_at')} AS "createdAt",
  ${isoMillis('template.updated_at')} AS "updatedAt"`

/**
 * The template that a workspace means by an id or a slug: one of its own, or one that ships with Berth.
 * @param by whether `key` is an id, a slug, or may be either.
 * @param lock for a transaction: `FOR SHARE` keeps others from archiving it before the end.
 * @throws ApiError 404 where there is none, or it was archived.
 */
export async function requireTemplate(
  db: Queryable,
  workspaceId: string,
  key: string,
  by: 'id' | 'slug' | 'either',
  lock: '' | 'FOR SHARE' | 'FOR UPDATE' = '',
): Promise<Template> {
  const id = by !== 'slug' && TEMPLATE_ID.test(key) ? key : null
  const slug = by !== 'id' && TEMPLATE_SLUG.test(key) ? key : null
  const { rows } = await db.query<Template>(
    `SELECT ${COLUMNS} FROM template
     WHERE workspace_id = $1 AND archived_at IS NULL AND (id = $2 OR slug = $3)
     ORDER BY id = $2 DESC NULLS LAST LIMIT 1 ${lock}`,
    [workspaceId, id, slug],
  )
  const found = rows[0] ?? (await bundledTemplates()).find((one) => one.id === id || one.slug === slug)
  if (!found) throw notFound('There is no such template')
  return found
}

/** The template that an agent was made from, archived or not; undefined where Berth no longer has it. */
export async function templateOf(db: Queryable, templateId: string): Promise<Template | undefined> {
  const { rows } = await db.query<Template>(`SELECT ${COLUMNS} FROM template WHERE id = $1`, [templateId])
  return rows[0] ?? (await bundledTemplates()).find(({ id }) => id === templateId)
}

export interface TemplateFilter {
  category?: string | undefined
  featured?: boolean | undefined
  /** Only those that this user made. */
  submittedBy?: string | undefined
}

/**
 * A page of what a workspace sees: first what ships with Berth, then its own templates, each by slug.
 * @param page.after only those behind the one with this {@link placeOf}.
 */
export async function listTemplates(
  db: Queryable,
  workspaceId: string,
  { category, featured, submittedBy }: TemplateFilter,
  { after, limit }: { after: string | undefined; limit: number },
): Promise<Template[]> {
  const shipped = (await bundledTemplates()).filter(
    (template) =>
      featured !== false &&
      submittedBy === undefined &&
      (category === undefined || template.details.category === category) &&
      (after === undefined || placeOf(template) > after),
  )
  if (featured === true || shipped.length >= limit) return shipped.slice(0, limit)
  const slugAfter = after?.startsWith(OWN) ? after.slice(OWN.length) : ''
  const { rows } = await db.query<Template>(
    `SELECT ${COLUMNS} FROM template
     WHERE workspace_id = $1 AND archived_at IS NULL AND ($2::text IS NULL OR details ->> 'category' = $2)
       AND ($3::uuid IS NULL OR user_id = $3) AND slug > $4
     ORDER BY slug LIMIT $5`,
    [workspaceId, category ?? null, submittedBy ?? null, slugAfter, limit - shipped.length],
  )
  return [...shipped, ...rows]
}

const SHIPPED = '0'
const OWN = '1'

/** Where a template is in the order of lists. */
export const placeOf = ({ slug, stored }: Pick<Template, 'slug' | 'stored'>): string =>
  `${stored === null ? SHIPPED : OWN}${slug}`

/** Every category of what a workspace sees, by name. */
export async function listCategories(db: Queryable, workspaceId: string): Promise<string[]> {
  const { rows } = await db.query<{ category: string }>(
    `SELECT DISTINCT details ->> 'category' AS category FROM template WHERE workspace_id = $1 AND archived_at IS NULL`,
    [workspaceId],
  )
  return categoriesOf(await bundledTemplates(), rows)
}

/** @param more categories beside those of `templates`. */
export function categoriesOf(templates: Template[], more: { category: string }[] = []): string[] {
  const all = [...templates.map(({ details }) => details), ...more]
  return [...new Set(all.map(({ category }) => category))].sort()
}
