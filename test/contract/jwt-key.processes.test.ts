/** Changing the key that signs API keys: for a while both keys are valid, see docs/operations.md. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { loadSigningKey } from '../../src/lib/signing-keys.ts'
import { assertError, Client } from '../support/client.ts'
import { DocumentCheck } from '../support/openapi.ts'
import { insertAgent } from './agents/rows.ts'
import { openContext } from './context.ts'
import { startWebProcess, type WebProcess } from './web-process.ts'

const context = await openContext()
const { anonymous, env, workspace } = context
const BAD_KEY = 'Invalid, expired or revoked API key'
const FILES = '/v3/files/public'

describe('a web process with a new JWT_KEY', () => {
  const previous = new TextDecoder().decode(loadSigningKey(env.JWT_KEY, env.BERTH_DATA_DIR ?? ''))
  const JWT_KEY = 'another key of at least 32 characters'
  const webs: WebProcess[] = []
  let both: Client
  let onlyNew: Client
  before(async () => {
    const start = async (settings: NodeJS.ProcessEnv) => {
      const web = await startWebProcess(env, settings)
      webs.push(web)
      return new Client(web.url, await DocumentCheck.load(web.url))
    }
    both = await start({ JWT_KEY, JWT_KEY_PREVIOUS: previous })
    onlyNew = await start({ JWT_KEY })
  })
  after(() => Promise.all(webs.map(({ running }) => running.end())))

  it('a new JWT_KEY leaves keys and tokens of the previous one valid while that is set', async () => {
    const own = await workspace()
    const { path, gateway } = await insertAgent(context, own)
    const { token } = (await gateway.post(`${path}/platform/token`, {})).body
    for (const [key, target] of [
      [own.api.key, FILES],
      [token, path],
    ]) {
      assert.equal((await both.as(key).get(target)).status, 200)
      assertError(await onlyNew.as(key).get(target), 401, BAD_KEY)
    }
  })
  it('a web process with a new JWT_KEY signs with the new one', async () => {
    const own = await workspace()
    const request = { keyName: 'new', permissions: { admin: true } }
    const { status, body } = await both.as(own.api.key).post('/v3/pinata/keys', request)
    assert.equal(status, 200)
    for (const web of [both, onlyNew]) assert.equal((await web.as(body.JWT).get(FILES)).status, 200)
    assertError(await anonymous.as(body.JWT).get(FILES), 401, BAD_KEY)
  })
  it('a web process with a new JWT_KEY rejects keys that neither key signed', async () => {
    const own = await workspace()
    const [head, claims] = own.api.key?.split('.') ?? []
    const forged = `${head}.${claims}.${'A'.repeat(43)}`
    for (const web of [both, onlyNew]) assertError(await web.as(forged).get(FILES), 401, BAD_KEY)
  })
})
