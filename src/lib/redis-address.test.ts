import assert from 'node:assert/strict'
import { it } from 'node:test'
import { parseRedisAddress } from './redis-address.ts'

it('the address of one Redis stays as it is', () => {
  assert.deepEqual(parseRedisAddress('rediss://:secret@redis:6380/2'), {
    url: 'rediss://:secret@redis:6380/2',
  })
})

it('the address of Sentinels names hosts, ports, the primary, both logins and the database', () => {
  const login = 'redis+sentinel://berth:p%40ss:1@one,two:26380,[::1]:26381/main'
  assert.deepEqual(parseRedisAddress(`${login}?db=3&sentinelUsername=watch&sentinelPassword=%26own`), {
    sentinels: [
      { host: 'one', port: 26_379 },
      { host: 'two', port: 26_380 },
      { host: '::1', port: 26_381 },
    ],
    name: 'main',
    username: 'berth',
    password: 'p@ss:1',
    db: 3,
    sentinelUsername: 'watch',
    sentinelPassword: '&own',
  })
})

it('rediss+sentinel is TLS to the servers and to the Sentinels', () => {
  assert.deepEqual(parseRedisAddress('rediss+sentinel://one/main'), {
    sentinels: [{ host: 'one', port: 26_379 }],
    name: 'main',
    tls: {},
    sentinelTLS: {},
    enableTLSForSentinelMode: true,
  })
})

for (const wrong of [
  'localhost:6379',
  'http://redis',
  'redis://one:6379,two:6379',
  'redis+sentinel://one:26379',
  'redis+sentinel:///main',
  'redis+sentinel://one,/main',
  'redis+sentinel://one:0/main',
  'redis+sentinel://one/main/2',
  'redis+sentinel://one/main?password=x',
  'redis+sentinel://one/main?db=first',
  'redis+sentinel://:%@one/main',
]) {
  it(`${wrong} is refused as the address of a Redis`, () => {
    assert.equal(parseRedisAddress(wrong), undefined)
  })
}
