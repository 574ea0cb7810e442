import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { complete } from './completion.ts'
import { writeProfiles } from './profiles.ts'
import { SCRIPTS } from './shells.ts'

const words = (...typed: string[]) => complete(typed).map(({ word }) => word)

describe('completion', () => {
  const before = process.env.XDG_CONFIG_HOME
  const dir = mkdtempSync(join(tmpdir(), 'berth-completion-'))
  process.env.XDG_CONFIG_HOME = dir
  writeProfiles({ profiles: { work: { url: 'https://berth.example.org', key: 'k' } } })
  after(() => {
    rmSync(dir, { recursive: true })
    if (before === undefined) delete process.env.XDG_CONFIG_HOME
    else process.env.XDG_CONFIG_HOME = before
  })

  it('offers the next word of a command, operators’ commands included', () => {
    assert.deepEqual(words('oper'), ['operations'])
    assert.deepEqual(words('mig'), ['migrate'])
    assert.deepEqual(words('agents', 'snap'), ['snapshots'])
    assert.deepEqual(words('agents', 'files', ''), ['ls', 'get', 'put', 'rm'])
  })
  it('offers options, their choices, and the names of profiles', () => {
    assert.deepEqual(words('files', 'ls', '--ne'), ['--network'])
    assert.deepEqual(words('files', 'ls', '--network', 'p'), ['public', 'private'])
    assert.deepEqual(words('files', 'ls', '--profile', ''), ['work'])
    assert.deepEqual(words('profiles', 'use', 'w'), ['work'])
  })
  it('offers nothing where a file, an id or a free text belongs', () => {
    assert.deepEqual(words('files', 'add', ''), [])
    assert.deepEqual(words('files', 'add', '--name', ''), [])
  })
  it('the script for bash is one that bash understands', () => {
    execFileSync('bash', ['-n'], { input: SCRIPTS.bash })
  })
})
