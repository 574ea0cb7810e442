import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { chooseTarget, readProfiles, trim, writeProfiles } from './profiles.ts'

const home = { url: 'https://home.example.org', key: 'home-key' }
const work = { url: 'https://work.example.org', key: 'work-key' }
const all = () => ({ current: 'home', profiles: { home, work } })
const choose = (profile: string | undefined, env: NodeJS.ProcessEnv) => chooseTarget(profile, env, all)

describe('the Berth of a command', () => {
  it('is that of --profile, then of the environment, then of the current profile', () => {
    const env = { BERTH_URL: 'https://other.example.org/', BERTH_KEY: 'k' }
    assert.deepEqual(choose('work', env), work)
    assert.deepEqual(choose(undefined, env), { url: 'https://other.example.org', key: 'k' })
    assert.deepEqual(choose(undefined, { BERTH_KEY: 'k' }), { url: 'http://localhost:3000', key: 'k' })
    assert.deepEqual(choose(undefined, { BERTH_PROFILE: 'work' }), work)
    assert.deepEqual(choose(undefined, {}), home)
  })
  it('gets the key of a profile only at the URL of that profile', () => {
    assert.deepEqual(choose(undefined, { BERTH_URL: 'https://work.example.org/' }), work)
    assert.throws(() => choose(undefined, { BERTH_URL: 'https://evil.example.org' }), /there is no key for/)
  })
  it('is missing with advice if nobody is signed in, or the profile is unknown', () => {
    const nobody = () => chooseTarget(undefined, {}, () => ({ profiles: {} }))
    assert.throws(nobody, { message: 'you are not signed in to a Berth', exit: 3 })
    assert.throws(() => choose('nowhere', {}), { message: 'there is no profile nowhere', exit: 3 })
  })
  it('may be written without a scheme: http for this machine, and otherwise https', () => {
    assert.deepEqual(
      ['localhost:3000/', '127.0.0.1:1', 'berth.example.org', 'http://a.example/x/'].map(trim),
      ['http://localhost:3000', 'http://127.0.0.1:1', 'https://berth.example.org', 'http://a.example/x'],
    )
  })
})

describe('the file of profiles', () => {
  const dir = mkdtempSync(join(tmpdir(), 'berth-profiles-'))
  after(() => rmSync(dir, { recursive: true }))
  it('is readable by its user only, also if it was not before', () => {
    const path = join(dir, 'berth/profiles.json')
    assert.deepEqual(readProfiles(path), { profiles: {} })
    writeProfiles({ profiles: {} }, path)
    writeFileSync(path, '{}', { mode: 0o644 })
    writeProfiles(all(), path)
    assert.equal(statSync(path).mode & 0o777, 0o600)
    assert.equal(statSync(join(dir, 'berth')).mode & 0o777, 0o700)
    assert.deepEqual(readProfiles(path), all())
  })
  it('is named with advice if it is damaged', () => {
    const path = join(dir, 'damaged.json')
    writeFileSync(path, '{')
    assert.throws(() => readProfiles(path), /damaged\.json: /)
  })
})
