import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { makeZip, type ZipEntry } from '../../../test/contract/agents/zip.ts'
import { BadSkill } from '../skills/skill-md.ts'
import { unzipSkill } from './upstream.ts'

const unzip = async (...entries: ZipEntry[]) =>
  (await unzipSkill(makeZip(entries))).map(({ path, bytes }) => [path, Buffer.from(bytes).toString()])
const refused = (expected: RegExp, ...entries: ZipEntry[]) =>
  assert.rejects(unzipSkill(makeZip(entries)), (error) => {
    assert.ok(error instanceof BadSkill, String(error))
    assert.match(error.message, expected)
    return true
  })
const md = { name: 'SKILL.md', content: 'x' }

describe('skill zips', () => {
  it('files in a zip are read, without folders', async () => {
    assert.deepEqual(
      await unzip(md, { name: 'a/', content: '', mode: 0o040755 }, { name: 'a/b', content: 'y' }),
      [
        ['SKILL.md', 'x'],
        ['a/b', 'y'],
      ],
    )
    assert.deepEqual(await unzip(), [])
  })
  it('the common top folder of a zip is removed', async () => {
    assert.deepEqual(
      await unzip({ name: 'skill/SKILL.md', content: 'x' }, { name: 'skill/a/b', content: 'y' }),
      [
        ['SKILL.md', 'x'],
        ['a/b', 'y'],
      ],
    )
  })
  it('paths in a zip cannot leave the folder', async () => {
    for (const name of ['../x', 'a/../../x', '/x', 'a\\..\\x', 'C:/x', 'C:\\x'])
      await refused(/not a valid zip/, md, { name, content: 'x' })
  })
  it('links and devices in a zip are refused', async () => {
    await refused(/link is not a regular file/, md, { name: 'link', content: '/etc/passwd', mode: 0o120777 })
    await refused(/fifo is not a regular file/, md, { name: 'fifo', content: '', mode: 0o010644 })
  })
  it('a zip with more files than a skill may have is refused', async () => {
    const many = Array.from({ length: 501 }, (_, i) => ({ name: `f${i}`, content: '' }))
    await refused(/more than 500 files/, ...many)
    const folders = Array.from({ length: 1100 }, (_, i) => ({ name: `f${i}/`, content: '' }))
    await refused(/more than 500 files/, ...folders)
    const big = Buffer.alloc(5_000_000)
    await refused(/more than 8388608 bytes/, { name: 'a', content: big }, { name: 'b', content: big })
  })
  it('a zip entry that inflates beyond its stated size is refused', async () => {
    await refused(/not a valid zip/, md, { name: 'bomb', content: Buffer.alloc(50_000_000), claimedSize: 10 })
  })
  it('a damaged zip is refused', async () => {
    const good = makeZip([md, { name: 'a', content: 'some text' }])
    for (const bytes of [
      Buffer.alloc(0),
      Buffer.from('PK'),
      good.subarray(0, -5),
      good.subarray(10),
      Buffer.alloc(99),
    ])
      await assert.rejects(unzipSkill(bytes), BadSkill)
  })
})
