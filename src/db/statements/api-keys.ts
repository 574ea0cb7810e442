import { PLAN, type Plan } from './plan.ts'
import { narrow, statement } from './statement.ts'

const COLUMNS = {
  keyId: 'uuid',
  workspaceId: 'uuid',
  userId: 'uuid?',
  role: narrow<'owner' | 'member' | 'viewer' | null>('text'),
  isInstanceAdmin: 'bool',
  scopes: 'text[]',
  maxUses: 'int4?',
  expiresAt: 'timestamptz?',
  audience: narrow<'mcp' | 'program' | null>('text'),
  plan: narrow<Plan>('json'),
} as const

/**
 * A key that is not revoked, with its user's role and the current plan. Hand-written SQL, because every request may
 * need it.
 */
export const findApiKey = statement({
  name: 'api-key-find',
  parameters: ['uuid', 'uuid'],
  columns: COLUMNS,
  text: `SELECT k.id AS "keyId", k.workspace_id AS "workspaceId", k.user_id AS "userId", m.role,
      coalesce(u.is_admin, false) AS "isInstanceAdmin", k.scopes,
      k.max_uses AS "maxUses", k.expires_at AS "expiresAt", k.audience, ${PLAN} AS plan
    FROM api_key k
    JOIN workspace w ON w.id = k.workspace_id
    JOIN plan p ON p.name = w.plan
    LEFT JOIN membership m ON m.workspace_id = k.workspace_id AND m.user_id = k.user_id
    LEFT JOIN app_user u ON u.id = m.user_id
    WHERE k.id = $1 AND k.workspace_id = $2 AND k.revoked_at IS NULL`,
})

/**
 * The same for a session, by the id in its cookie and the hash of its secret (`$2`, hexadecimal), unless it was unused
 * for `$3` seconds. The current role of its user determines its scopes. Hand-written SQL, because every dashboard
 * request needs it.
 */
export const findSession = statement({
  name: 'session-find',
  parameters: ['uuid', 'text', 'float8'],
  columns: { ...COLUMNS, isSession: 'bool' },
  text: `SELECT k.id AS "keyId", k.workspace_id AS "workspaceId", k.user_id AS "userId", m.role,
      u.is_admin AS "isInstanceAdmin",
      CASE m.role WHEN 'viewer' THEN ARRAY['org:read'] ELSE ARRAY['admin'] END
        || CASE WHEN u.is_admin THEN ARRAY['instance:write'] ELSE ARRAY[]::text[] END AS scopes,
      k.max_uses AS "maxUses", k.expires_at AS "expiresAt", k.audience, ${PLAN} AS plan, true AS "isSession"
    FROM session s
    JOIN api_key k ON k.id = s.key_id
    JOIN workspace w ON w.id = k.workspace_id
    JOIN plan p ON p.name = w.plan
    JOIN membership m ON m.workspace_id = k.workspace_id AND m.user_id = k.user_id
    JOIN app_user u ON u.id = m.user_id
    WHERE (s.key_id = $1 OR s.cookie_id = $1) AND k.secret_hash = decode($2, 'hex') AND k.revoked_at IS NULL AND k.expires_at > now()
      AND coalesce(k.last_used_at, k.created_at) > now() - make_interval(secs => $3)`,
})

/**
 * Records when keys were used, at most once a minute each. Hand-written SQL: a key that another process is recording
 * right now is skipped, so that nobody waits.
 */
export const noteKeyUses = statement({
  name: 'api-key-note-uses',
  parameters: ['uuid[]'],
  columns: {},
  text: `UPDATE api_key SET last_used_at = now() WHERE id IN (
      SELECT id FROM api_key WHERE id = ANY($1)
        AND (last_used_at IS NULL OR last_used_at < now() - interval '1 minute')
      FOR NO KEY UPDATE SKIP LOCKED)`,
})

/** Counts a use of a key that has uses left. Hand-written SQL, because every request with such a key needs it. */
export const countKeyUse = statement({
  name: 'api-key-use',
  parameters: ['uuid'],
  columns: {},
  text: 'UPDATE api_key SET uses = uses + 1 WHERE id = $1 AND uses < max_uses',
})
