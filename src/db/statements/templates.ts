/** Hand-written SQL: locks, lists by slug in byte order, and a filter by a JSON field. */
import { isoMillis, narrow, statement } from './statement.ts'

type Network = 'public' | 'private'

const TEMPLATE = {
  id: 'text',
  slug: 'text',
  name: 'text',
  details: narrow<unknown>('jsonb'),
  snapshotCid: 'text',
  stored: narrow<{ network: Network; executables: string[] }>('json'),
  submittedBy: 'uuid',
  createdAt: 'text',
  updatedAt: 'text',
} as const
const SELECT_TEMPLATE = `SELECT id, slug, name, details, snapshot_cid AS "snapshotCid",
    json_build_object('network', network, 'executables', executables) AS stored, user_id AS "submittedBy",
    ${isoMillis('created_at')} AS "createdAt", ${isoMillis('updated_at')} AS "updatedAt"
  FROM template`

const find = (name: string, lock: '' | 'FOR SHARE' | 'FOR UPDATE') =>
  statement({
    name,
    parameters: ['uuid', 'text?', 'text?'],
    columns: TEMPLATE,
    text: `${SELECT_TEMPLATE} WHERE workspace_id = $1 AND archived_at IS NULL AND (id = $2 OR slug = $3)
      ORDER BY id = $2 DESC NULLS LAST LIMIT 1 ${lock}`,
  })

/** A template of a workspace that is not archived, by its id (`$2`) or else its slug (`$3`). */
export const findTemplate = find('template-find', '')
/** {@link findTemplate}, locked against changes until the commit. */
export const findTemplateToUse = find('template-find-share', 'FOR SHARE')
/** {@link findTemplate} for changing it. */
export const findTemplateToChange = find('template-find-update', 'FOR UPDATE')

/** Finds a template, archived or not. */
export const findAnyTemplate = statement({
  name: 'template-find-any',
  parameters: ['text'],
  columns: TEMPLATE,
  text: `${SELECT_TEMPLATE} WHERE id = $1`,
})

/** Templates of a workspace by slug: `$5` after the slug `$4`, optionally of a category (`$2`) and of a user (`$3`). */
export const listTemplateRows = statement({
  name: 'template-list',
  parameters: ['uuid', 'text?', 'uuid?', 'text', 'int8'],
  columns: TEMPLATE,
  text: `${SELECT_TEMPLATE}
    WHERE workspace_id = $1 AND archived_at IS NULL AND ($2::text IS NULL OR details ->> 'category' = $2)
      AND ($3::uuid IS NULL OR user_id = $3) AND slug > $4
    ORDER BY slug LIMIT $5`,
})

export const readCategories = statement({
  name: 'template-categories',
  parameters: ['uuid'],
  columns: { category: 'text' },
  text: `SELECT DISTINCT details ->> 'category' AS category FROM template
    WHERE workspace_id = $1 AND archived_at IS NULL`,
})

/** Deletes the archived templates of a workspace from which no existing agent was created. */
export const deleteArchived = statement({
  name: 'template-delete-archived',
  parameters: ['uuid'],
  columns: { network: narrow<Network>('text'), cid: 'text' },
  text: `DELETE FROM template WHERE id IN (
      SELECT id FROM template WHERE workspace_id = $1 AND archived_at IS NOT NULL
        AND NOT EXISTS (SELECT FROM agent WHERE template_id = template.id AND deleted_at IS NULL)
      ORDER BY id FOR UPDATE SKIP LOCKED)
    RETURNING network, snapshot_cid AS cid`,
})
