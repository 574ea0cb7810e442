import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { describeIssue } from '../../http/shapes.ts'
import { newConfig } from './config-schema.ts'

const fault = (config: unknown): string | undefined => {
  const { error } = newConfig.safeParse({ config })
  return error && describeIssue(error)
}
const NO_CONFIG = 'config: must be a JSON object at most 32 deep, or its text'

describe('agent config', () => {
  it('malformed config is refused with its line and column [report: config edits]', () => {
    for (const [text, reason] of [
      ['{\n  "a": 1,\n  "b" 2\n}', "invalid character '2' at line 3, column 7"],
      ["{\n  // JSON5\n  a: 'x',\n  b c\n}", "invalid character 'c' at line 4, column 5"],
      ['{', 'invalid end of input at line 1, column 2'],
      ['', 'invalid end of input at line 1, column 1'],
      ['nothing', "invalid character 'o' at line 1, column 2"],
    ])
      assert.equal(fault(text), `config: not valid JSON: ${reason}`)
    assert.match(fault(`{a: 1,\n${' '.repeat(70_000)}}`) ?? '', /cannot be JSON5$/)
  })
  it("config may be JSON5, like the engine's file [report: config edits]", () => {
    const { config } = newConfig.parse({ config: "{ // why\n  a: 'x', b: [1, 2,],\n}" })
    assert.deepEqual(JSON.parse(config), { a: 'x', b: [1, 2] })
    const json = '{"a":\n1}'
    assert.equal(newConfig.parse({ config: json }).config, json, 'JSON is kept as sent')
  })
  it('config must be an object that JSON can express', () => {
    for (const bad of ['[]', '7', 'null', '{a: Infinity}', '{a: [NaN]}', [], 7, null])
      assert.equal(fault(bad), NO_CONFIG, JSON.stringify(bad))
    assert.equal(fault({ a: 1 }), undefined)
  })
})
