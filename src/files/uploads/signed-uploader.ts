/**
 * SQL for who uploads by what a key gave out (a row with a `key_id`), as JSON of an `Uploader` with the plan of
 * now; NULL when the key has ended, or its user has left or only reads.
 * @param table the row's table.
 */
export const UPLOADER = (table: string): string => `(
  SELECT json_build_object('workspaceId', k.workspace_id, 'userId', k.user_id,
    'plan', json_build_object('name', p.name, 'pinByCid', p.pin_by_cid, 'maxFileBytes', p.max_file_bytes,
      'storageBytes', p.storage_bytes, 'requestsPerMinute', p.requests_per_minute))
  FROM api_key k
  JOIN membership m ON m.workspace_id = k.workspace_id AND m.user_id = k.user_id AND m.role <> 'viewer'
  JOIN workspace w ON w.id = k.workspace_id
  JOIN plan p ON p.name = w.plan
  WHERE k.id = ${table}.key_id AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > now()))`
