/** `skill_version_rank` sorts versions in SQL like the library semver. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { compare, prerelease } from 'semver'
import { useDatabase } from '../../support/database.ts'

/** In ascending order. */
const VERSIONS = [
  ...['0.0.1', '0.9.9', '0.10.0', '1.0.0-0', '1.0.0-2', '1.0.0-10', '1.0.0--', '1.0.0-1a', '1.0.0-alpha'],
  ...[
    '1.0.0-alpha.1',
    '1.0.0-alpha.1.0',
    '1.0.0-alpha.beta',
    '1.0.0-alpha-b',
    '1.0.0-beta.2',
    '1.0.0-beta.11',
  ],
  ...['1.0.0-rc.1+build-7', '1.0.0', '1.0.1+a-b', '1.2.0', '1.10.0', '2.0.0-rc.1', '2.0.0', '10.0.0'],
  `99999999999999.0.0`,
]

const database = await useDatabase()
const pool = database.pool

const sorted = async (expression: string): Promise<(string | null)[]> => {
  const { rows } = await pool.query<{ version: string | null }>(
    `SELECT version FROM unnest($1::text[]) AS given(version) ORDER BY ${expression} COLLATE "C"`,
    [[...VERSIONS.toReversed(), null]],
  )
  return rows.map(({ version }) => version)
}

describe('the order of versions in SQL', () => {
  it('versions sort in SQL by the precedence of the library semver [report: newest version]', async () => {
    assert.deepEqual(VERSIONS.toReversed().sort(compare), VERSIONS)
    assert.deepEqual(await sorted('substr(skill_version_rank(version), 2)'), [null, ...VERSIONS])
  })
  it('prereleases sort before releases, and missing versions first [report: newest version]', async () => {
    const isRelease = (version: string) => prerelease(version) === null
    const expected = [null, ...VERSIONS.filter((one) => !isRelease(one)), ...VERSIONS.filter(isRelease)]
    assert.deepEqual(await sorted('skill_version_rank(version)'), expected)
  })
})
