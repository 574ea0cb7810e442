/**
 * The rights of each kind of credential: each one requests every route of the document. The table in `docs/security.md`
 * shows the outcome; `npm run docs:security` writes it.
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

/**
 * Routes only for API keys: through them, text that the agent reads could make it take over the account, or widen its
 * rights.
 */
const KEYS_ONLY = [
  ...['createKey', 'listKeys', 'revokeKey', 'deleteKey', 'signUpload', 'signDownload'],
  ...['deleteAgent', 'getGatewayToken', 'rotateGatewayToken', 'updateSecret', 'deleteSecret'],
  ...['addSkill', 'addSkillVersion', 'deleteSkill'],
  ...[
    'setModelBudget',
    'removeModelBudget',
    'setAgentModelBudget',
    'removeAgentModelBudget',
    'resumeAgentModel',
  ],
  ...['enableLlm', 'disableLlm'],
  ...['updateTemplate', 'archiveTemplate', 'cancelOperation', 'deleteFile'],
]
/** Routes beyond its own agent that the platform skill calls: only with BERTH_PLATFORM_TOKEN_SCOPE=workspace. */
const WIDENED = ['createAgent', 'createSecret', 'installHubSkill', 'createTemplate']
const OF_AGENTS = ['gateway', 'platform', 'wide', 'other agent']

describe('access by credential', () => {
  let asked: Answered[] = []

  before(async () => {
    const { stdout } = await promisify(execFile)(process.execPath, [PROGRAM], { maxBuffer: 2 ** 24 })
    asked = JSON.parse(stdout)
  })

  const guarded = () => asked.filter(({ outcomes }) => outcomes.nobody !== 'in')

  it('all routes return 401 without a valid key, and agent routes for another workspace’s key', () => {
    for (const { route, outcomes } of guarded()) {
      assert.deepEqual([outcomes.nobody, outcomes.revoked], [401, 401], route.id)
      if (route.path.includes('{agentId}')) {
        assert.equal(outcomes['other workspace'], 401, route.id)
        // No agent's token has the scope `admin`, which is checked first.
        const isForOwners = outcomes['org:write'] === 403 && outcomes.admin === 'in'
        assert.equal(outcomes['other agent'], isForOwners ? 403 : 401, route.id)
      }
      if (route.path.includes('{workspaceId}')) assert.equal(outcomes['other workspace'], 404, route.id)
    }
  })
  it("an agent's token changes only its agent; only the workspace scope lets it create resources", () => {
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
  it("an agent's token of any scope cannot read accounts, webhooks or the instance", () => {
    const routes = guarded().filter(({ route }) =>
      /^\/v0\/(workspaces|webhooks|admin)|\/keys/.test(route.path),
    )
    assert.ok(routes.length > 5)
    for (const { route, outcomes } of routes)
      for (const name of OF_AGENTS) assert.equal(outcomes[name], 403, `${route.id}: ${name}`)
  })
  it('only instance scopes reach the instance, and only owners members and webhooks', () => {
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
  it('the access table matches docs/security.md', async () => {
    const page = await readFile(PAGE, 'utf8')
    const [start, end] = [page.indexOf(BEGIN), page.indexOf(END)]
    assert.ok(start >= 0 && end > start, 'docs/security.md has no place for the table')
    const expected = `${page.slice(0, start)}${BEGIN}\n\n${table(asked)}\n\n${page.slice(end)}`
    if (process.env.BERTH_TEST_DOCS === 'write') await writeFile(PAGE, expected)
    else assert.equal(page, expected, 'run `npm run docs:security`')
  })
})
