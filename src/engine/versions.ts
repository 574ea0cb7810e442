/** Which versions of the engine agents can run. */
import type { Config } from '../config.ts'
import type { Queryable } from '../db/pool.ts'
import { isEngineVersion } from './install.ts'

/** Those of the settings, and those that a worker has at hand; the newest first. */
export async function availableVersions(
  db: Queryable,
  {
    BERTH_ENGINE_VERSION,
    BERTH_ENGINE_VERSIONS,
  }: Pick<Config, 'BERTH_ENGINE_VERSION' | 'BERTH_ENGINE_VERSIONS'>,
): Promise<string[]> {
  const { rows } = await db.query<{ version: string }>(
    `SELECT DISTINCT version FROM engine_version WHERE engine = 'openclaw'`,
  )
  const all = [BERTH_ENGINE_VERSION, ...BERTH_ENGINE_VERSIONS, ...rows.map(({ version }) => version)]
  return [...new Set(all)].filter(isEngineVersion).sort((a, b) => compareVersions(b, a))
}

/** Orders versions from the oldest: year, month and number of a release count as numbers. */
export function compareVersions(a: string, b: string): number {
  const [left, right] = [a, b].map((version) => version.split('.').map(Number))
  for (const [i, part] of (left ?? []).entries()) {
    const difference = part - (right?.[i] ?? 0)
    if (difference !== 0) return difference
  }
  return 0
}
