/** The hub with an operator's skills folder, and an upstream that implements ClawHub's API, correctly or not. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { CID } from 'multiformats/cid'
import { assertError } from '../../support/client.ts'
import { until } from '../../support/processes.ts'
import { openContext } from '../context.ts'
import { startWebProcess } from '../web-process.ts'
import { skillMd } from './skill-folders.ts'
import { makeZip } from './zip.ts'

const HUB = '/v0/clawhub'

/** Responses of the upstream by path; tests change them. */
const answers = new Map<string, (res: ServerResponse, query: URLSearchParams) => void>()
const asked: string[] = []
const upstream = createServer((req, res) => {
  const { pathname, searchParams } = new URL(req.url ?? '', 'http://x')
  asked.push(req.url ?? '')
  const answer = answers.get(pathname)
  if (answer) answer(res, searchParams)
  else res.writeHead(404).end()
})
upstream.listen(0, '127.0.0.1')
await once(upstream, 'listening')
const json = (body: unknown) => (res: ServerResponse) => void res.end(JSON.stringify(body))

const dir = await mkdtemp(join(tmpdir(), 'berth-hub-'))
async function addFolder(slug: string, files: Record<string, string>): Promise<void> {
  for (const [path, text] of Object.entries(files)) {
    const file = join(dir, slug, path)
    await mkdir(join(file, '..'), { recursive: true })
    await writeFile(file, text)
  }
}
await addFolder('acme/tool', {
  'SKILL.md': skillMd('tool', 'metadata: { version: 0.1.0 }'),
  'skill.json': JSON.stringify({ category: 'tools', envVars: [{ name: 'TOOL_KEY', required: true }] }),
})
await addFolder('acme/broken', { 'SKILL.md': 'no front matter' })
await addFolder('acme/odd', { 'SKILL.md': skillMd('odd'), 'skill.json': '{' })
await addFolder('berth/journal', { 'SKILL.md': skillMd('not the shipped one') })
await addFolder('a b/c', { 'SKILL.md': skillMd('x') })
await symlink('/etc', join(dir, 'acme/tool/link'))

const url = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`
const context = await openContext()
const web = await startWebProcess(context.env, { BERTH_CLAWHUB_DIR: dir, BERTH_CLAWHUB_URL: url })
const api = (await context.workspace()).api.at(web.url)
after(async () => {
  await web.running.end()
  upstream.closeAllConnections()
  upstream.close()
  await rm(dir, { recursive: true })
})

const at = (slug: string) => `${HUB}/${encodeURIComponent(slug)}`
const install = (slug: string) => api.post(`${at(slug)}/install`, {})
const slugsOf = (body: any): string[] => body.skills.map(({ slug }: { slug: string }) => slug)

/** Makes the upstream offer a skill with this archive. */
function offer(name: string, zip: Buffer, more: Record<string, unknown> = {}): void {
  answers.set(
    `/api/v1/skills/${name}`,
    json({
      skill: { slug: name, displayName: 'A skill', summary: 'From upstream.', createdAt: 1, updatedAt: 2 },
      latestVersion: { version: '3.1.4' },
      owner: { handle: 'jo', displayName: 'Jo', image: null },
      ...more,
    }),
  )
  answers.set('/api/v1/download', (res, query) => {
    assert.deepEqual([query.get('slug'), query.get('ownerHandle')], [name, 'jo'])
    res.end(zip)
  })
}

describe('the operator’s skills folder', () => {
  it('the operator’s skills folder adds to the shipped skills, and replaces none of them', async () => {
    const { body } = await api.get(HUB, { sort: 'name' })
    assert.deepEqual(slugsOf(body), [
      '@berth/handover',
      '@berth/journal',
      '@berth/platform',
      '@acme/tool',
      '@berth/web-page',
    ])
    const { skill } = (await api.get(at('@acme/tool'))).body
    assert.deepEqual([skill.authorName, skill.category, skill.version], ['acme', 'tools', '0.1.0'])
    assert.deepEqual(skill.envVars, [{ name: 'TOOL_KEY', required: true }])
    assert.equal((await api.get(at('@berth/journal'))).body.skill.name, 'journal')
  })
  it('the operator’s skills folder is read on each request, and a change becomes a version', async () => {
    const first = (await install('@acme/tool')).body.skill
    assert.deepEqual(first.envVars, [{ name: 'TOOL_KEY' }])
    await addFolder('acme/tool', { 'SKILL.md': skillMd('tool', 'version: 0.2.0') })
    const second = (await install('@acme/tool')).body.skill
    assert.deepEqual([second.skillId, second.version], [first.skillId, '0.2.0'])
    assert.notEqual(second.skillCid, first.skillCid)
    const { versions } = (await api.get(`/v0/skills/${first.skillId}/versions`)).body
    assert.deepEqual(
      versions.map(({ version }: any) => version),
      ['0.2.0', '0.1.0'],
    )
  })
})

describe('the upstream hub', () => {
  it('upstream skills are listed after local ones, page by page', async () => {
    answers.set('/api/v1/skills', (res, query) => {
      const isFirst = !query.has('cursor')
      const item = (slug: string, handle?: string) => ({
        slug,
        displayName: slug,
        ...(handle && { ownerHandle: handle }),
      })
      const items = isFirst
        ? [item('one', 'jo'), item('tool', 'acme'), item('plain'), { slug: 7 }, item('../x', 'jo')]
        : [item('two', 'jo')]
      json({ items, nextCursor: isFirst ? 'more' : null })(res)
    })
    const first = (await api.get(HUB)).body
    assert.equal(first.nextCursor, 'u:')
    const second = (await api.get(HUB, { cursor: first.nextCursor })).body
    assert.deepEqual([slugsOf(second), second.nextCursor], [['@jo/one', 'plain'], 'u:more'])
    assert.equal(second.skills[0].skillCid, null)
    const third = (await api.get(HUB, { cursor: second.nextCursor })).body
    assert.deepEqual([slugsOf(third), third.nextCursor], [['@jo/two'], null])
    assert.equal((await api.get(HUB, { featured: 'true' })).body.nextCursor, null)
  })
  it('the upstream hub is searched', async () => {
    answers.set('/api/v1/search', (res, query) => {
      json({
        results: [{ slug: `found-${query.get('q')}`, summary: 'x', ownerHandle: 'jo', version: '1.0.0' }],
      })(res)
    })
    const first = (await api.get(HUB, { q: 'tax' })).body
    assert.deepEqual([slugsOf(first), first.nextCursor], [[], 'u:'])
    assert.deepEqual(slugsOf((await api.get(HUB, { q: 'tax', cursor: 'u:' })).body), ['@jo/found-tax'])
  })
  it('an upstream skill is installed by unpacking its zip', async () => {
    offer(
      'taxes',
      makeZip([
        { name: 'SKILL.md', content: skillMd('taxes') },
        { name: 'a/run.sh', content: '#!/bin/sh' },
      ]),
    )
    const { skill } = (await api.get(at('@jo/taxes'))).body
    assert.deepEqual(
      [skill.name, skill.description, skill.authorName, skill.version, skill.category],
      ['A skill', 'From upstream.', 'Jo', '3.1.4', 'community'],
    )
    const { status, body } = await install('@jo/taxes')
    assert.equal(status, 200, JSON.stringify(body))
    assert.deepEqual([body.skill.slug, body.skill.version], ['@jo/taxes', '3.1.4'])
    assert.equal(await context.isPinned(CID.parse(body.skill.skillCid)), true)
    assert.deepEqual((await install('@jo/taxes')).body, body)
  })
  it('malformed or dangerous archives of the upstream hub are refused', async () => {
    const md = { name: 'SKILL.md', content: skillMd() }
    const bad: [Buffer, RegExp][] = [
      [makeZip([md, { name: '../../x', content: 'x' }]), /refused: it is not a valid zip/],
      [
        makeZip([md, { name: 'link', content: '/etc/passwd', mode: 0o120777 }]),
        /refused: link is not a regular file/,
      ],
      [makeZip([md, { name: '.git/config', content: 'x' }]), /refused: it has a file with an invalid name/],
      [makeZip([md, { name: 'SKILL.md', content: 'x' }]), /refused: two files have one path/],
      [makeZip([{ name: 'README.md', content: 'x' }]), /refused: it has no file SKILL\.md/],
      [makeZip([{ name: 'SKILL.md', content: 'x' }]), /refused: SKILL\.md/],
      [Buffer.from('<html>'), /refused: it is not a valid zip/],
    ]
    for (const [zip, message] of bad) {
      offer('bad', zip)
      const reply = await install('@jo/bad')
      assertError(reply, 502, message)
      assert.equal(reply.headers.get('error-code'), 'hub_skill_refused')
    }
    const { skills } = (await api.get('/v0/skills')).body
    assert.ok(!skills.some(({ slug }: { slug: string }) => slug === '@jo/bad'))
  })
  it('a skill that the upstream hub marks as malware is not found', async () => {
    offer('evil', makeZip([{ name: 'SKILL.md', content: skillMd() }]), {
      moderation: { isMalwareBlocked: true },
    })
    assertError(await install('@jo/evil'), 404, 'There is no such skill in the hub')
  })
  it('the upstream hub finds no skill of another owner, and no unknown skill', async () => {
    offer('mine', makeZip([]))
    for (const slug of ['@ann/mine', '@jo/unknown', 'unknown'])
      assertError(await api.get(at(slug)), 404, 'There is no such skill in the hub')
    asked.length = 0
    assertError(await install('@berth/unknown'), 404, 'There is no such skill in the hub')
    assert.deepEqual(asked, [], 'shipped skills come from nowhere else')
  })
  it('the upstream hub cannot replace local skills under any name', async () => {
    const zip = makeZip([{ name: 'SKILL.md', content: skillMd() }])
    for (const [asked, slug, handle] of [
      ['platform', 'platform', 'berth'],
      ['new-one', 'new-one', 'berth'],
      ['tool', 'tool', 'acme'],
      ['another', 'taxes', 'jo'],
    ] as const) {
      offer(asked, zip, { skill: { slug }, owner: { handle } })
      assertError(await api.get(at(asked)), 404, 'There is no such skill in the hub')
      assertError(await install(asked), 404, 'There is no such skill in the hub')
    }
    const items = [{ slug: 'new-one', ownerHandle: 'berth' }]
    answers.set('/api/v1/skills', json({ items }))
    assert.deepEqual(slugsOf((await api.get(HUB, { cursor: 'u:' })).body), [])
  })
  it('a failing, invalid or endless upstream hub returns 503, and local skills still work', async () => {
    const endless = (res: ServerResponse) => {
      const chunk = Buffer.alloc(65_536, ' ')
      const more = () => {
        while (!res.destroyed && res.write(chunk)) {}
      }
      res.on('drain', more)
      more()
    }
    const bad: ((res: ServerResponse) => void)[] = [
      (res) => res.writeHead(500).end(),
      (res) => res.writeHead(302, { location: 'http://127.0.0.1:1/' }).end(),
      (res) => res.end('{"skill": '),
      (res) => res.end('null'),
      (res) => res.end('{"skill": {"slug": 1}}'),
      (res) => res.destroy(),
      endless,
    ]
    for (const answer of bad) {
      answers.set('/api/v1/skills/taxes', answer)
      answers.set('/api/v1/skills', answer)
      assertError(await api.get(at('@jo/taxes')), 503, 'The hub of skills does not answer')
      assertError(await api.get(HUB, { cursor: 'u:' }), 503, 'The hub of skills does not answer')
      assert.equal((await api.get(HUB)).status, 200)
      assert.equal((await install('@berth/journal')).status, 200)
    }
    offer('large', Buffer.alloc(17_000_000))
    assertError(await install('@jo/large'), 503, 'The hub of skills does not answer')
    await until('no connection is left open', async () => {
      const count = await new Promise<number>((resolve) => upstream.getConnections((_, n) => resolve(n)))
      return count <= 2
    })
  })
})
