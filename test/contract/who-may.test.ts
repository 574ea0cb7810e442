/**
 * Rights of each sort of credential: each route of the document is asked with each of them. The table in
 * `docs/security.md` is the outcome; `npm run docs:security` writes it.
 */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { before, describe, it } from 'node:test'
import { promisify } from 'node:util'
import { isOfInstance } from '../../src/http/principal.ts'
import { type Answered, BEGIN, END, table, WIDENED_OWN } from './who-may.ts'

const PROGRAM = join(import.meta.dirname, 'who-may.program.ts')
const PAGE = new URL('../../docs/security.md', import.meta.url)

/** Routes for API keys alone: by them, words that the agent reads could have it own the account, or widen its rights. */
const KEYS_ONLY = [
  ...['createKey', 'listKeys', 'revokeKey', 'deleteKey', 'signUpload', 'signDownload'],
  ...['deleteAgent', 'getGatewayToken', 'rotateGatewayToken', 'updateSecret', 'deleteSecret'],
  ...['addSkill', 'addSkillVersion', 'deleteSkill'],
  ...['updateTemplate', 'archiveTemplate', 'cancelOperation', 'deleteFile'],
]
/** Routes beyond its agent that the platform skill asks for: with BERTH_PLATFORM_TOKEN_SCOPE=workspace alone. */
const WIDENED = ['createAgent', 'createSecret', 'installHubSkill', 'createTemplate']
const OF_AGENTS = ['gateway', 'platform', 'wide', 'other agent']

describe('who may do what', () => {
  let asked: Answered[] = []

  before(async () => {
    const { stdout } = await promisify(execFile)(process.execPath, [PROGRAM], { maxBuffer: 2 ** 24 })
    asked = JSON.parse(stdout)
  })

  const guarded = () => asked.filter(({ outcomes }) => outcomes.nobody !== 'in')

  it('all routes are 401 for nobody and for a revoked key, and those of an agent for another workspace’s key', () => {
    for (const { route, outcomes } of guarded()) {
      assert.deepEqual([outcomes.nobody, outcomes.revoked], [401, 401], route.id)
      if (route.path.includes('{agentId}')) {
        assert.equal(outcomes['other workspace'], 401, route.id)
        assert.equal(outcomes['other agent'], 401, route.id)
      }
      if (route.path.includes('{workspaceId}')) assert.equal(outcomes['other workspace'], 404, route.id)
    }
  })
  it('a token of an agent makes no keys or tokens and changes only what is its own; agents, secrets, skills and templates it makes with BERTH_PLATFORM_TOKEN_SCOPE=workspace alone', () => {
    for (const id of KEYS_ONLY) {
      const outcomes = asked.find(({ route }) => route.id === id)?.outcomes
      assert.ok(outcomes, `there is no route ${id}`)
      for (const name of OF_AGENTS) assert.notEqual(outcomes[name], 'in', `${id}: ${name}`)
    }
    const attach = asked.find(({ route }) => route.id === WIDENED_OWN)?.outcomes
    assert.deepEqual(
      OF_AGENTS.map((name) => attach?.[name]),
      [403, 403, 403, 401],
    )
    for (const { route, outcomes } of guarded().filter(({ route }) => WIDENED.includes(route.id)))
      assert.deepEqual(
        OF_AGENTS.map((name) => outcomes[name]),
        [403, 403, 'in', 403],
        route.id,
      )
    for (const { route, outcomes } of guarded().filter(({ route }) => !WIDENED.includes(route.id))) {
      if (route.method !== 'GET' && !['Issues', 'Feedback'].includes(route.tag))
        assert.notEqual(outcomes.wide, 'in', route.id)
      if (route.path.startsWith('/v3/') || route.path.startsWith('/psa'))
        for (const name of OF_AGENTS) assert.notEqual(outcomes[name], 'in', `${route.id}: ${name}`)
    }
  })
  it('a token of an agent, of whatever scope, sees nothing of workspaces, members, keys, webhooks or the instance', () => {
    const routes = guarded().filter(({ route }) =>
      /^\/v0\/(workspaces|webhooks|admin)|\/keys/.test(route.path),
    )
    assert.ok(routes.length > 5)
    for (const { route, outcomes } of routes)
      for (const name of OF_AGENTS) assert.equal(outcomes[name], 403, `${route.id}: ${name}`)
  })
  it('the instance is seen to by keys with its own scopes alone, and the members and webhooks of a workspace by its owners alone', () => {
    const ofInstance = guarded().filter(({ route }) => route.path.startsWith('/v0/admin/'))
    assert.ok(ofInstance.length > 5)
    for (const { route, outcomes } of ofInstance)
      for (const [name, outcome] of Object.entries(outcomes))
        assert.equal(
          outcome === 'in',
          isOfInstance(name) && (route.method === 'GET' || name.endsWith('write')),
          `${route.id}: ${name}`,
        )
    const ofOwners = guarded().filter(
      ({ route: { path, method } }) =>
        path.startsWith('/v0/webhooks') ||
        (/^\/v0\/workspaces\/\{workspaceId\}/.test(path) &&
          !path.includes('/keys') &&
          (path.endsWith('s') || method !== 'GET')),
    )
    assert.ok(ofOwners.length > 5)
    for (const { route, outcomes } of ofOwners)
      assert.deepEqual([outcomes.member, outcomes.viewer], [403, 403], route.id)
  })
  it('the table of who may do what is that of docs/security.md', async () => {
    const page = await readFile(PAGE, 'utf8')
    const [start, end] = [page.indexOf(BEGIN), page.indexOf(END)]
    assert.ok(start >= 0 && end > start, 'docs/security.md has no place for the table')
    const expected = `${page.slice(0, start)}${BEGIN}\n\n${table(asked)}\n\n${page.slice(end)}`
    if (process.env.BERTH_TEST_DOCS === 'write') await writeFile(PAGE, expected)
    else assert.equal(page, expected, 'run `npm run docs:security`')
  })
})
