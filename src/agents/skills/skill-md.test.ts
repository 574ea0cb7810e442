import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { BadSkill, readSkillMd } from './skill-md.ts'

const read = (text: string) => readSkillMd(Buffer.from(text))

describe('the front matter of SKILL.md', () => {
  it('--- inside a value does not end the front matter [report: skill files]', () => {
    for (const value of ['a --- b', 'a ---', '"---"', '|\n  a\n  ---\n  b', '>-\n  a\n    --- \n  b', 'x---'])
      assert.match(read(`---\nname: a\ndescription: ${value}\n---\nBody.\n`).description, /---/, value)
    assert.deepEqual(read('---\nname: a---\ndescription: x\nversion: 1.0.0\n---\n\n---\nname: b\n---\n'), {
      name: 'a---',
      description: 'x',
      version: '1.0.0',
    })
  })
  it('the front matter may have any line endings and a byte order mark [report: skill files]', () => {
    const expected = { name: 'a', description: 'x', version: null }
    for (const text of [
      '---\r\nname: a\r\ndescription: x\r\n---\r\nBody.',
      '---\rname: a\rdescription: x\r---\rBody.',
      '\uFEFF--- \t\nname: a\ndescription: x\n---  \nBody.',
      '---\nname: a\ndescription: x\n---',
    ])
      assert.deepEqual(read(text), expected, JSON.stringify(text))
  })
  it('a number is read as text, as the engine does [report: skill files]', () => {
    assert.equal(read('---\nname: 2048\ndescription: true\n---\n').name, '2048')
  })
  it('a file with missing or unterminated front matter is refused', () => {
    for (const text of [
      '',
      '---',
      '---\n---x\n',
      'name: a\n---\n',
      ' ---\nname: a\n---\n',
      '---\nname: a\n ---\n',
    ])
      assert.throws(() => read(text), BadSkill, JSON.stringify(text))
    assert.throws(() => read('---\n---\n'), /front matter: /)
  })
})
