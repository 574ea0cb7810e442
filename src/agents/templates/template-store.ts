/** Reads templates: the rows of a workspace, and those that ship with Berth. Rows of other workspaces are invisible. */
import type { Cursor } from '../../db/cursor.ts'
import type { Queryable } from '../../db/pool.ts'
import {
  findAnyTemplate,
  findTemplate,
  findTemplateToChange,
  findTemplateToUse,
  listTemplateRows,
  readCategories,
} from '../../db/statements/templates.ts'
import { notFound } from '../../errors.ts'
import { type BundledTemplate, bundledTemplates } from './bundled.ts'
import { TEMPLATE_ID, TEMPLATE_SLUG, type Template } from './template.ts'

/** A template of a workspace. */
type StoredTemplate = Template & { stored: NonNullable<Template['stored']> }

/** How to find a template: for reading, locked against archiving until the commit, or locked against all changes. */
const FIND = { read: findTemplate, use: findTemplateToUse, change: findTemplateToChange }

/**
 * The template that a workspace means by an id or a slug: one of its own, or one that ships with Berth.
 * @param by whether `key` is an id, a slug, or may be either.
 * @param to the purpose, see {@link FIND}.
 * @throws ApiError 404 if there is none, or if it was archived.
 */
export async function requireTemplate(
  db: Queryable,
  workspaceId: string,
  key: string,
  by: 'id' | 'slug' | 'either',
  to: keyof typeof FIND = 'read',
): Promise<Template> {
  const id = by !== 'slug' && TEMPLATE_ID.test(key) ? key : null
  const slug = by !== 'id' && TEMPLATE_SLUG.test(key) ? key : null
  const own = (await FIND[to].first(db, workspaceId, id, slug)) as Template | undefined
  const found = own ?? (await bundledTemplates()).find((one) => one.id === id || one.slug === slug)
  if (!found) throw notFound('There is no such template')
  return found
}

/** The template that an agent was made from, archived or not; undefined if Berth no longer has it. */
export async function templateOf(
  db: Queryable,
  templateId: string,
): Promise<StoredTemplate | BundledTemplate | undefined> {
  const own = (await findAnyTemplate.first(db, templateId)) as StoredTemplate | undefined
  return own ?? (await bundledTemplates()).find(({ id }) => id === templateId)
}

export interface TemplateFilter {
  category?: string | undefined
  featured?: boolean | undefined
  /** Only templates that this user created. */
  submittedBy?: string | undefined
}

/**
 * A page of the templates visible to a workspace: first those that ship with Berth, then its own, each by slug.
 * @param cursor.after returns only templates after this place in {@link templateOrder}.
 */
export async function listTemplates(
  db: Queryable,
  workspaceId: string,
  { category, featured, submittedBy }: TemplateFilter,
  { after, limit }: Cursor,
): Promise<Template[]> {
  const shipped = (await bundledTemplates()).filter(
    (template) =>
      featured !== false &&
      submittedBy === undefined &&
      (category === undefined || template.details.category === category) &&
      (after === undefined || templateOrder.placeOf(template) > after),
  )
  if (featured === true || shipped.length >= limit) return shipped.slice(0, limit)
  const slugAfter = after?.startsWith(OWN) ? after.slice(OWN.length) : ''
  const most = limit - shipped.length
  const { rows } = await listTemplateRows.run(
    db,
    workspaceId,
    category ?? null,
    submittedBy ?? null,
    slugAfter,
    most,
  )
  return [...shipped, ...(rows as Template[])]
}

const SHIPPED = '0'
const OWN = '1'

/** The order of lists. */
export const templateOrder = {
  placeOf: ({ slug, stored }: Template) => `${stored === null ? SHIPPED : OWN}${slug}`,
  isPlace: (text: string) => /^[01][a-z0-9-]+$/.test(text),
}

/** Every category of the templates visible to a workspace, by name. */
export async function listCategories(db: Queryable, workspaceId: string): Promise<string[]> {
  const { rows } = await readCategories.run(db, workspaceId)
  return categoriesOf(await bundledTemplates(), rows)
}

/** @param more categories in addition to those of `templates`. */
export function categoriesOf(templates: Template[], more: { category: string }[] = []): string[] {
  const all = [...templates.map(({ details }) => details), ...more]
  return [...new Set(all.map(({ category }) => category))].sort()
}
