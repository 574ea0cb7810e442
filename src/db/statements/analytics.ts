/**
 * Counts of requests that gateways served. Hand-written SQL, because it adds to many rows at once, and sums by a column
 * that the request names.
 */
import { narrow, statement } from './statement.ts'

/** Stands for values beyond a gateway's daily limit, in each of the text columns. */
export const OTHER = '(other)'

/**
 * Adds counts, `$1`, a JSON array of rows. A deleted gateway gets none. For each day of a gateway, at most `$2` rows
 * are created; new values beyond them are added to the row of {@link OTHER}. Rows are written in a fixed order, so that
 * processes that write the same rows wait for each other instead of ending in a deadlock.
 */
export const addRequestCounts = statement({
  name: 'analytics-add',
  parameters: ['text', 'int8'],
  columns: {},
  text: `WITH given AS (
      SELECT * FROM json_to_recordset($1::text::json) AS g (gateway_id uuid, day date, cid text, file_name text,
        user_agent text, referrer text, status smallint, requests bigint, bytes bigint)
    ), present AS (
      SELECT id FROM gateway WHERE id IN (SELECT gateway_id FROM given) ORDER BY id FOR KEY SHARE
    ), taken AS (
      SELECT gateway_id, day, count(*) AS rows FROM gateway_request_count
      WHERE (gateway_id, day) IN (SELECT gateway_id, day FROM given) GROUP BY gateway_id, day
    ), placed AS (
      SELECT given.*, known.day IS NOT NULL OR coalesce(taken.rows, 0)
          + row_number() OVER (PARTITION BY given.gateway_id, given.day, known.day IS NULL) <= $2 AS fits
      FROM given JOIN present ON present.id = given.gateway_id
      LEFT JOIN taken ON taken.gateway_id = given.gateway_id AND taken.day = given.day
      LEFT JOIN gateway_request_count AS known ON known.gateway_id = given.gateway_id AND known.day = given.day
        AND known.cid = given.cid AND known.file_name = given.file_name AND known.user_agent = given.user_agent
        AND known.referrer = given.referrer AND known.status = given.status
    )
    INSERT INTO gateway_request_count AS total
      (gateway_id, day, cid, file_name, user_agent, referrer, status, requests, bytes)
    SELECT gateway_id, day, ${['cid', 'file_name', 'user_agent', 'referrer']
      .map((column) => `CASE WHEN fits THEN ${column} ELSE '${OTHER}' END`)
      .join(', ')}, status, sum(requests), sum(bytes)
    FROM placed GROUP BY 1, 2, 3, 4, 5, 6, 7 ORDER BY 1, 2, 3, 4, 5, 6, 7
    ON CONFLICT (gateway_id, day, cid, file_name, user_agent, referrer, status)
    DO UPDATE SET requests = total.requests + excluded.requests, bytes = total.bytes + excluded.bytes`,
})

/**
 * The counts of the gateway `$1` from the day `$2` to the day `$3`, both inclusive, filtered by the other parameters
 * that are not null.
 */
const SELECTED = `FROM gateway_request_count
  WHERE gateway_id = $1 AND day BETWEEN $2::text::date AND $3::text::date
    AND ($4::text IS NULL OR cid = $4) AND ($5::text IS NULL OR file_name = $5)
    AND ($6::text IS NULL OR user_agent = $6) AND ($7::text IS NULL OR referrer = $7)
    AND ($8::int IS NULL OR status = $8)`
const SELECTION = ['uuid', 'text', 'text', 'text?', 'text?', 'text?', 'text?', 'int4?'] as const

/** Totals by a column, `$9`, for non-empty values. @see readPeriods for `$10` to `$12`. */
export const readTop = statement({
  name: 'analytics-top',
  parameters: [...SELECTION, 'text', 'bool', 'bool', 'int8'],
  columns: { value: 'text', requests: 'float8', bandwidth: 'float8' },
  text: `SELECT value, sum(requests)::float8 AS requests, sum(bytes)::float8 AS bandwidth
    FROM (SELECT requests, bytes, CASE $9::text WHEN 'cid' THEN cid WHEN 'file_name' THEN file_name
      WHEN 'user_agent' THEN user_agent WHEN 'referer' THEN referrer END AS value ${SELECTED}) AS counted
    WHERE value <> '' GROUP BY value
    ORDER BY (CASE WHEN $10::bool THEN sum(bytes) ELSE sum(requests) END) * (CASE WHEN $11::bool THEN 1 ELSE -1 END), value
    LIMIT $12`,
})

/**
 * Totals by day or by week from Monday (`$9`), for periods that have any, with the overall totals in each row. `$10`
 * sorts by `time`, `requests` or `bandwidth`, `$11` sorts ascending; at most `$12` rows.
 */
export const readPeriods = statement({
  name: 'analytics-periods',
  parameters: [...SELECTION, narrow<'day' | 'week'>('text'), 'text', 'bool', 'int8'],
  columns: {
    period_start_time: 'text',
    requests: 'float8',
    bandwidth: 'float8',
    allRequests: 'float8',
    allBandwidth: 'float8',
  },
  text: `SELECT to_char(start, 'YYYY-MM-DD') AS period_start_time, requests, bandwidth,
      sum(requests) OVER () AS "allRequests", sum(bandwidth) OVER () AS "allBandwidth"
    FROM (SELECT date_trunc($9::text, day::timestamp) AS start, sum(requests)::float8 AS requests,
        sum(bytes)::float8 AS bandwidth ${SELECTED} GROUP BY 1) AS period
    ORDER BY (CASE $10::text WHEN 'requests' THEN requests WHEN 'bandwidth' THEN bandwidth
      ELSE extract(epoch FROM start) END) * (CASE WHEN $11::bool THEN 1 ELSE -1 END), start
    LIMIT $12`,
})

/** Deletes at most `$1` counts of days more than `$2` days ago. */
export const forgetRequestCounts = statement({
  name: 'analytics-forget',
  parameters: ['int8', 'int4'],
  columns: {},
  text: `DELETE FROM gateway_request_count WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM gateway_request_count WHERE day < current_date - $2::int LIMIT $1))`,
})
