import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { chmod, mkdir, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { type ServedAgentd, serveAgentd } from '../test/support/agentd-services.ts'
import { EPOCH_HEADER, type SkillFiles, type SkillFolder } from './protocol.ts'
import { skillsService } from './skills.ts'

const ONE = { 'SKILL.md': '---\nname: a\n---\n', 'scripts/run.sh': '#!/bin/sh\necho one\n' }
const TWO = { 'SKILL.md': '---\nname: a\n---\nnew\n' }

describe('skill folders', () => {
  let agentd: ServedAgentd
  let skills: string
  beforeEach(async () => {
    agentd = await serveAgentd([skillsService])
    skills = join(agentd.agent.paths.root, 'skills')
  })
  afterEach(() => agentd.close())

  const call = async (method: string, name: string, body?: unknown) => {
    const response = await agentd.send(method, `/v1/skills/${encodeURIComponent(name)}`, {
      body: body === undefined ? undefined : JSON.stringify(body),
      headers: { [EPOCH_HEADER]: '1' },
    })
    let text = ''
    for await (const chunk of response) text += chunk
    return { status: response.statusCode, body: JSON.parse(text) }
  }
  const put = (
    name: string,
    cid: string,
    files: Record<string, string>,
    resolution?: SkillFiles['resolution'],
  ) =>
    call('PUT', name, {
      cid,
      files: Object.entries(files).map(([path, text]) => ({
        path,
        base64: Buffer.from(text).toString('base64'),
      })),
      resolution,
    })
  const list = async () => (await agentd.json('GET', '/v1/skills')).body.skills
  const text = (...path: string[]) => readFile(join(skills, ...path), 'utf8')

  it('skill folders are written, listed, replaced as a whole and removed', async () => {
    assert.deepEqual(await list(), [])
    assert.deepEqual(await put('a', 'c1', ONE), {
      status: 200,
      body: { name: 'a', cid: 'c1', state: 'same' },
    })
    assert.equal(await text('a', 'scripts', 'run.sh'), ONE['scripts/run.sh'])
    assert.equal((await stat(join(skills, 'a/scripts/run.sh'))).mode & 0o777, 0o755)
    assert.equal((await stat(join(skills, 'a/SKILL.md'))).mode & 0o777, 0o644)
    assert.deepEqual(await list(), [{ name: 'a', cid: 'c1', state: 'same' }])
    await put('a', 'c2', TWO)
    assert.deepEqual(await readdir(join(skills, 'a')), ['SKILL.md'])
    assert.equal(await text('a', 'SKILL.md'), TWO['SKILL.md'])
    assert.equal((await call('DELETE', 'a')).status, 200)
    assert.deepEqual(await readdir(skills), [])
    assert.deepEqual(await list(), [])
    assert.equal((await call('DELETE', 'a')).status, 200, 'again')
  })

  it('skill folders are below their owner, whose folder is removed with the last one', async () => {
    await put('@o/a', 'c1', ONE)
    await put('@o/b', 'c1', TWO)
    assert.deepEqual((await readdir(join(skills, '@o'))).sort(), ['a', 'b'])
    await call('DELETE', '@o/a')
    assert.deepEqual(await readdir(join(skills, '@o')), ['b'])
    await call('DELETE', '@o/b')
    assert.deepEqual(await readdir(skills), [])
  })

  it('skill folders that the agent has changed are not overwritten, unless requested', async () => {
    await put('a', 'c1', ONE)
    await writeFile(join(skills, 'a/SKILL.md'), 'mine')
    assert.deepEqual(await list(), [{ name: 'a', cid: 'c1', state: 'modified' }])
    const refused = await put('a', 'c2', TWO)
    assert.deepEqual([refused.status, refused.body.error], [409, 'conflict'])
    assert.equal(await text('a', 'SKILL.md'), 'mine')
    assert.deepEqual(await put('a', 'c2', TWO, 'keep'), {
      status: 200,
      body: { name: 'a', cid: 'c2', state: 'modified' },
    })
    assert.equal(await text('a', 'SKILL.md'), 'mine')
    assert.equal((await put('a', 'c2', TWO, 'replace')).body.state, 'same')
    assert.equal(await text('a', 'SKILL.md'), TWO['SKILL.md'])
  })

  it('skill folders count as changed with an extra file, a link, or a missing file', async () => {
    const changes = {
      more: (at: string) => writeFile(join(at, 'more'), ''),
      link: (at: string) => symlink('SKILL.md', join(at, 'link')),
      less: (at: string) => rm(join(at, 'SKILL.md')),
    }
    for (const [name, change] of Object.entries(changes)) {
      await put(name, 'c1', ONE)
      await change(join(skills, name))
      assert.equal((await list()).find((one: { name: string }) => one.name === name).state, 'modified', name)
    }
  })

  it('skill folders that the agent created itself stay, whatever they are', async () => {
    await mkdir(join(skills, 'own'), { recursive: true })
    await writeFile(join(skills, 'own/SKILL.md'), 'mine')
    await symlink('/etc', join(skills, 'link'))
    await writeFile(join(skills, 'file'), 'mine')
    assert.deepEqual(await list(), [{ name: 'own', cid: null, state: 'modified' }])
    for (const name of ['own', 'link', 'file']) {
      assert.equal((await put(name, 'c1', TWO)).status, 409, name)
      assert.equal((await call('DELETE', name)).status, 200)
    }
    assert.equal(await text('own', 'SKILL.md'), 'mine')
    assert.deepEqual((await readdir(skills)).sort(), ['file', 'link', 'own'])
    for (const name of ['own', 'link', 'file'])
      assert.equal((await put(name, 'c1', TWO, 'replace')).body.state, 'same', name)
  })

  it('skill folders are adopted if nothing is lost, as after a restore with another record', async () => {
    await put('a', 'c1', ONE)
    await rm(join(agentd.agent.paths.home, '.berth'), { recursive: true })
    await rm(join(skills, 'a/scripts'), { recursive: true })
    assert.equal((await put('a', 'c1', ONE)).body.state, 'same')
    assert.equal(await text('a', 'scripts', 'run.sh'), ONE['scripts/run.sh'])
  })

  it('skill folders that the agent has removed are missing, and come back', async () => {
    await put('a', 'c1', ONE)
    await rm(join(skills, 'a'), { recursive: true })
    assert.deepEqual(await list(), [{ name: 'a', cid: 'c1', state: 'missing' }])
    assert.equal((await put('a', 'c1', ONE)).body.state, 'same')
  })

  it('skill folders contain no path that leaves them', async () => {
    const bad = [
      '../x',
      'a/../../x',
      '/x',
      'a//b',
      './a',
      '',
      '.git/config',
      'a/.GIT/x',
      'a\0b',
      `${'x'.repeat(256)}`,
    ]
    for (const path of bad) assert.equal((await put('a', 'c1', { ...ONE, [path]: 'x' })).status, 400, path)
    assert.equal((await put('a', 'c1', { 'SKILL.md': 'x', 'SKILL.md/x': 'y' })).status, 400)
    for (const name of ['@o', '@o/a/b', '@o/..', 'a b', '.a', ''])
      assert.equal((await put(name, 'c1', ONE)).status, 400, name)
    assert.equal((await put('a', 'c1', {})).status, 400)
    assert.deepEqual(await list(), [])
    assert.deepEqual(await readdir(join(agentd.agent.paths.home, '.agentd')), [], 'nothing is left behind')
  })

  it("skill folders do not follow the agent's links out of its root", async () => {
    await symlink(agentd.agent.paths.home, skills)
    const refused = await put('a', 'c1', ONE)
    assert.deepEqual([refused.status, refused.body.error], [403, 'outside'])
  })

  it('skill folders that the agent has closed do not block the others', async (t) => {
    const { seteuid } = process
    if (process.getuid?.() !== 0 || !seteuid) return t.skip('needs root, to become somebody else')
    await put('closed', 'c1', ONE)
    await put('inside', 'c1', ONE)
    await put('open', 'c1', ONE)
    await chmod(join(skills, 'closed'), 0)
    await chmod(join(skills, 'inside/scripts'), 0)
    const folder = join(agentd.agent.paths.home, '..')
    execFileSync('chown', ['-R', 'nobody', folder])
    seteuid('nobody')
    try {
      const states = async () => (await list()).map(({ name, state }: SkillFolder) => `${name} ${state}`)
      assert.deepEqual(await states(), ['closed modified', 'inside modified', 'open same'])
      assert.equal((await put('closed', 'c2', TWO)).status, 409)
      assert.equal((await put('open', 'c2', TWO)).body.state, 'same')
      await chmod(skills, 0)
      assert.deepEqual(await states(), ['closed missing', 'inside missing', 'open missing'])
      assert.equal((await put('open', 'c1', ONE)).status, 400)
    } finally {
      seteuid(0)
    }
  })

  it('skill folders survive a malformed record', async () => {
    await put('a', 'c1', ONE)
    for (const broken of ['', '{', '[]', 'null', '{"a": 1}', '{"a": {"cid": 1}}']) {
      await writeFile(join(agentd.agent.paths.home, '.berth/skills.json'), broken)
      assert.deepEqual(await list(), [{ name: 'a', cid: null, state: 'modified' }], broken)
      assert.equal((await put('a', 'c1', ONE)).body.state, 'same')
    }
  })
})
