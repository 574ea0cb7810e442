import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createLogger, type Logger, shortUrl } from './log.ts'

describe('the log', () => {
  const lines: string[] = []
  const log: Logger = createLogger('test', 'debug', { write: (line) => void lines.push(line) })

  it('the log shows an error’s type and origin, and not what its client did', () => {
    const cause = Object.assign(new Error('refused'), { args: ['hunter2'] })
    const error = Object.assign(new TypeError('WRONGPASS', { cause }), {
      code: 'E_TEST',
      command: { name: 'auth', args: ['default', 'hunter2'] },
    })
    log.error({ err: error }, 'redis connection')
    log.error(error)
    for (const line of lines.splice(0)) {
      assert.doesNotMatch(line, /hunter2/)
      const { err } = JSON.parse(line)
      assert.deepEqual(err, {
        type: 'TypeError',
        message: 'WRONGPASS',
        stack: error.stack,
        code: 'E_TEST',
        cause: 'refused',
      })
    }
  })

  it('the log contains no token, wherever it occurred', () => {
    const tokens = [
      'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ4In0.dGhlIHNpZ25hdHVyZQ',
      '0f8fad5b-d9cb-469f-a165-70867728950e',
      '0F8FAD5B-D9CB-469F-A165-70867728950E',
    ]
    for (const token of tokens) {
      const url = `/v1/chat?session=1&token=${token}`
      log.info({ req: { url }, token, headers: { authorization: token } }, `upgrade of ${url}`)
      log.error(new Error(`no answer to ${url}`, { cause: new Error(`"${token}"`) }))
    }
    const secret = 's3cr3t-value'
    const urls = [
      `/?token=${secret}`,
      `/?a=b&gatewayToken=${secret}&c=d`,
      `/?%74oken=${secret}`,
      `/x?pinataGatewayToken=${secret}`,
      `/files/cid?X-Signature=${secret}`,
      `/v3/files/tus/01a20000-0000-7000-8000-000000000000/${secret}?x=1`,
      `postgres://berth:${secret}@127.0.0.1/berth`,
    ]
    for (const url of urls) log.warn({ req: { url }, url }, url)
    assert.equal(lines.length, 2 * tokens.length + urls.length)
    for (const line of lines.splice(0)) {
      assert.doesNotThrow(() => JSON.parse(line), line)
      for (const token of [...tokens, secret]) assert.ok(!line.includes(token), line)
    }
  })
  it('the log is equally fast with malicious URLs', () => {
    for (const part of [
      'eyJ',
      '?a%',
      '?%',
      '%',
      '&token',
      '/v3/files/tus/',
      'a://',
      '0f8fad5b-d9cb-469f-a165-',
    ])
      log.info({ req: { url: `/?${part.repeat(100_000 / part.length)}` } }, 'x')
    assert.equal(lines.splice(0).length, 8)
  })
  it('a long URL is truncated between its parts', () => {
    assert.equal(shortUrl('/a?b=c'), '/a?b=c')
    const secret = 'x'.repeat(2100)
    for (const [url, short] of [
      [`/a?b=c&token=${secret}`, '/a?b=c&…'],
      [`/a/${secret}`, '/a/…'],
      [`/${'a&'.repeat(2000)}`, `/${'a&'.repeat(1023)}…`],
    ] as const)
      assert.equal(shortUrl(url), short)
  })
  it('the log keeps ids and harmless parameters', () => {
    const url = '/v3/files?limit=5&order=DESC'
    log.info({ url, operation: '01a203b4-166a-774f-839a-2ead75e9fc85' }, 'x')
    const line = JSON.parse(lines.splice(0)[0] as string)
    assert.deepEqual([line.url, line.operation], [url, '01a203b4-166a-774f-839a-2ead75e9fc85'])
  })
})
