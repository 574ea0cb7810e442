import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { complete } from './completion.ts'
import { writeProfiles } from './profiles.ts'
import { SCRIPTS } from './shells.ts'

const words = async (...typed: string[]) => (await complete(typed)).map(({ word }) => word)

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

  it('offers the next word of a command, operators’ commands included', async () => {
    assert.deepEqual(await words('oper'), ['operations'])
    assert.deepEqual(await words('mig'), ['migrate'])
    assert.deepEqual(await words('agents', 'snap'), ['snapshots'])
    assert.deepEqual(await words('agents', 'files', ''), ['ls', 'get', 'put', 'rm'])
  })
  it('offers options, their choices, and the names of profiles', async () => {
    assert.deepEqual(await words('files', 'ls', '--ne'), ['--network'])
    assert.deepEqual(await words('files', 'ls', '--network', 'p'), ['public', 'private'])
    assert.deepEqual(await words('files', 'ls', '--profile', ''), ['work'])
    assert.deepEqual(await words('profiles', 'use', 'w'), ['work'])
    assert.deepEqual(await words('--profile', 'work', '--json', 'files', 'ls', '--network', 'pu'), ['public'])
    assert.deepEqual(await words('files', 'ls', '-p', ''), ['work'])
  })
  it('offers nothing where a file, an id or a free text belongs', async () => {
    assert.deepEqual(await words('files', 'add', ''), [])
    assert.deepEqual(await words('files', 'add', '--name', ''), [])
  })
  it('the script for bash is one that bash understands', () => {
    execFileSync('bash', ['-n'], { input: SCRIPTS.bash })
  })
})
