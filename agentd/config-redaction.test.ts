import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { REDACTED, redact, redactText, restore } from './config-redaction.ts'

const isSecret = (text: string) => text.includes('hunter2')

describe('redact', () => {
  test('redact hides secrets by their name, value and form', () => {
    const config = {
      gateway: { auth: { token: 't', mode: 'token' } },
      channels: { slack: { botToken: 'b', app_token: 'a', signingSecret: 's', enabled: true } },
      models: {
        providers: { a: { apiKey: 'k', maxTokens: 5, api: 'openai-completions' } },
      },
      tokens: ['one', 'two'],
      url: 'https://user:pass@host/x',
      plain: 'https://host:8080/x@y',
      note: 'the word is hunter2 here',
      tokenFile: '/run/token',
    }
    assert.deepEqual(redact(config, isSecret), {
      gateway: { auth: { token: REDACTED, mode: 'token' } },
      channels: {
        slack: { botToken: REDACTED, app_token: REDACTED, signingSecret: REDACTED, enabled: true },
      },
      models: {
        providers: {
          a: { apiKey: REDACTED, maxTokens: 5, api: 'openai-completions' },
        },
      },
      tokens: [REDACTED, REDACTED],
      url: REDACTED,
      plain: 'https://host:8080/x@y',
      note: REDACTED,
      tokenFile: '/run/token',
    })
  })

  test('redact hides what the engine treats as secret by its position or another name', () => {
    const config = {
      env: { vars: { FAL_KEY: 'f', DATABASE_URL: 'd' }, shellEnv: { enabled: true } },
      mcp: {
        servers: { a: { command: 'c', env: { PAT: 'p', HOME: `\${HOME}` }, headers: { 'X-Auth': 'x' } } },
      },
      channels: { chat: { serviceAccount: '{}', serviceAccountFile: '/f', encryptKey: 'e' } },
      s3: { secretAccessKey: 's', publicKey: 'p' },
    }
    assert.deepEqual(redact(config, isSecret), {
      env: { vars: { FAL_KEY: REDACTED, DATABASE_URL: REDACTED }, shellEnv: { enabled: true } },
      mcp: {
        servers: {
          a: { command: 'c', env: { PAT: REDACTED, HOME: `\${HOME}` }, headers: { 'X-Auth': REDACTED } },
        },
      },
      channels: { chat: { serviceAccount: REDACTED, serviceAccountFile: '/f', encryptKey: REDACTED } },
      s3: { secretAccessKey: REDACTED, publicKey: 'p' },
    })
  })

  test('redact keeps references to secrets', () => {
    const config = { apiKey: `\${KEY}`, password: '', token: { source: 'env', id: 'KEY' }, secret: null }
    assert.deepEqual(redact(config, isSecret), config)
  })
})

test('redactText hides secrets in broken text', () => {
  const text = `{ "apiKey": "k\\"1", botToken:'b2', "name": "n", "tokenFile": "/f",\n "password" : "open\n broken`
  const hidden = `"${REDACTED}"`
  assert.equal(
    redactText(text),
    `{ "apiKey": ${hidden}, botToken:${hidden}, "name": "n", "tokenFile": "/f",\n "password" : ${hidden}\n broken`,
  )
})

test('redactText handles a long text quickly', { timeout: 60_000 }, () => {
  for (const part of ['a', ' ', 'a:"', '"\\', 'a   ']) redactText(part.repeat(500_000))
})

describe('restore', () => {
  const stored = {
    a: { key: 'one' },
    list: [
      { id: 'x', key: 'X' },
      { id: 'y', key: 'Y' },
    ],
    words: ['p', 'q'],
  }

  test('restore puts back the stored values at the same positions', () => {
    const written = { a: { key: REDACTED, more: 1 }, b: null }
    assert.deepEqual(restore(written, stored), { a: { key: 'one', more: 1 }, b: null })
  })

  test('restore finds list items by their id, whatever their order', () => {
    const list = [
      { id: 'y', key: REDACTED },
      { id: 'new', key: 'Z' },
      { id: 'x', key: REDACTED },
    ]
    assert.deepEqual(restore({ list }, stored), {
      list: [
        { id: 'y', key: 'Y' },
        { id: 'new', key: 'Z' },
        { id: 'x', key: 'X' },
      ],
    })
    assert.deepEqual(restore({ words: ['other', REDACTED] }, stored), { words: ['other', 'q'] })
  })

  const refused: [string, unknown, RegExp][] = [
    ['a place that is new', { b: REDACTED }, /^b: there is no stored value/],
    ['a place that holds no text', { a: REDACTED }, /^a: there is no stored value/],
    ['a list without ids that has another length', { words: [REDACTED] }, /^words\.0: /],
    ['an item with an unknown id', { list: [{ id: 'z', key: REDACTED }] }, /^list\.0\.key: /],
    ['two items of one id, stored', { twice: [{ id: 'x', key: REDACTED }] }, /^twice\.0\.key: /],
    ['a part of a text', { a: { key: `Bearer ${REDACTED}` } }, /^a\.key: /],
    ['a name', { a: { [REDACTED]: 1 } }, /^a: /],
    ['a name that every object has', { constructor: REDACTED }, /^constructor: /],
    ['a stored text that is redacted itself', { broken: REDACTED }, /^broken: /],
  ]
  for (const [what, written, message] of refused)
    test(`restore refuses ${what}`, () => {
      const twice = [
        { id: 'x', key: '1' },
        { id: 'x', key: '2' },
      ]
      assert.throws(() => restore(written, { ...stored, twice, broken: REDACTED }), {
        code: 'bad_request',
        message,
      })
    })

  test('restore refuses values that are nested too deeply, instead of failing', () => {
    const deep = JSON.parse('['.repeat(5000) + ']'.repeat(5000))
    assert.throws(() => restore(deep, {}), { code: 'bad_request' })
  })

  test('restore treats names that reach prototypes as plain names', () => {
    const value = restore(JSON.parse('{"__proto__":{"polluted":true}}'), {}) as object
    assert.equal(JSON.stringify(value), '{"__proto__":{"polluted":true}}')
    assert.equal('polluted' in {}, false)
  })
})
