import { PLAN, type Plan } from './plan.ts'
import { narrow, statement } from './statement.ts'

/** A key that is not revoked, with the role of its user and the plan of now. By hand: every request may need it. */
export const findApiKey = statement({
  name: 'api-key-find',
  parameters: ['uuid', 'uuid'],
  columns: {
    keyId: 'uuid',
    workspaceId: 'uuid',
    userId: 'uuid?',
    role: narrow<'owner' | 'member' | 'viewer' | null>('text'),
    scopes: 'text[]',
    maxUses: 'int4?',
    expiresAt: 'timestamptz?',
    plan: narrow<Plan>('json'),
  },
  text: `SELECT k.id AS "keyId", k.workspace_id AS "workspaceId", k.user_id AS "userId", m.role, k.scopes,
      k.max_uses AS "maxUses", k.expires_at AS "expiresAt", ${PLAN} AS plan
    FROM api_key k
    JOIN workspace w ON w.id = k.workspace_id
    JOIN plan p ON p.name = w.plan
    LEFT JOIN membership m ON m.workspace_id = k.workspace_id AND m.user_id = k.user_id
    WHERE k.id = $1 AND k.workspace_id = $2 AND k.revoked_at IS NULL`,
})

/** Counts a use of a key that has some left. By hand: every request with such a key needs it. */
export const countKeyUse = statement({
  name: 'api-key-use',
  parameters: ['uuid'],
  columns: {},
  text: 'UPDATE api_key SET uses = uses + 1 WHERE id = $1 AND uses < max_uses',
})
