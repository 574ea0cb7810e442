/** How the contract suite searches the log for tokens. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, it } from 'node:test'
import { findLogged, recordTokens, TOKEN_RECORD } from '../support/token-record.ts'

const dir = await mkdtemp(join(tmpdir(), 'berth-tokens-'))
const before = process.env[TOKEN_RECORD]
const file = join(dir, 'tokens')
process.env[TOKEN_RECORD] = file
after(() => {
  if (before === undefined) delete process.env[TOKEN_RECORD]
  else process.env[TOKEN_RECORD] = before
  return rm(dir, { recursive: true, force: true })
})

it('the token record finds lines with a key, a returned token, a signature or a secret’s value', async () => {
  const [key, gatewayToken, signature, value, harmless] = Array.from({ length: 5 }, () => randomUUID())
  const url = `http://localhost/files/cid?X-Signature=${signature}`
  recordTokens('/v0/agents', key, undefined, {
    agent: { gatewayToken, name: harmless },
    urls: [url],
    next_page_token: harmless,
    nextPageToken: harmless,
  })
  recordTokens('/v0/secrets', key, { name: 'KEY', value })
  const lines = [key, gatewayToken, signature, value].map((token) => JSON.stringify({ msg: `of ${token}` }))
  const output = [...lines, JSON.stringify({ msg: harmless }), `export KEY=${key}`].join('\n')
  assert.deepEqual(await findLogged(file, output), { tokens: 4, lines })
})
