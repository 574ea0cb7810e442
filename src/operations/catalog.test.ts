import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { describe, it } from 'node:test'
import { catalog, OPERATION_KINDS, type Retry, readableKinds, readResult, scopeOf } from './catalog.ts'

const PAGE = new URL('../../docs/operation-kinds.md', import.meta.url)
const PLACE = /(<!-- kinds -->\n)[\s\S]*(<!-- \/kinds -->)/

const inWords = (ms: number) =>
  ms % 60_000 === 0 ? `${ms / 60_000} min` : ms % 1000 === 0 ? `${ms / 1000} s` : `${ms} ms`
const retryInWords = ({ firstMs, maxMs, forMs, maxErrors }: Retry) =>
  `after ${inWords(firstMs)} to ${inWords(maxMs)}, ${forMs === null ? 'without end' : `for ${inWords(forMs)}`}; ${maxErrors} unexpected errors`

function table(): string {
  const rows = OPERATION_KINDS.map((kind) => {
    const { summary, queue, cancelable, retry, timeoutMs } = catalog[kind]
    const scope = scopeOf(kind, 'read')
    const bound = timeoutMs === null ? '' : inWords(timeoutMs)
    return `| \`${kind}\` | ${summary} | \`${queue}\` | ${retryInWords(retry)} | ${bound} | ${cancelable ? 'yes' : ''} | ${scope ? `\`${scope}\`` : ''} |`
  })
  const head =
    '| kind | what it does | queue | tried again | an attempt takes at most | clients may cancel | to read it |'
  return `${head}\n|---|---|---|---|---|---|---|\n${rows.join('\n')}\n`
}
describe('the catalogue of operations', () => {
  it('the catalogue of operations matches the documentation', async () => {
    const page = await readFile(PAGE, 'utf8')
    const right = page.replace(PLACE, (_, before, after) => `${before}${table()}${after}`)
    if (process.env.BERTH_TEST_DOCS === 'write') await writeFile(PAGE, right)
    else assert.equal(page, right)
    assert.match(page, PLACE)
  })

  it('the catalogue of operations lets a scope read only the kinds of its resource', () => {
    const ofFiles = readableKinds(['org:files:read'])
    assert.ok(ofFiles.includes('pin.add') && !ofFiles.includes('agent.sync'))
    const shown = OPERATION_KINDS.filter((kind) => catalog[kind].resource !== null)
    assert.equal(readableKinds(['org:agents:write']).length, shown.length - ofFiles.length)
    assert.deepEqual(readableKinds(['org:write']), shown)
    assert.ok(!shown.includes('webhook.deliver'))
  })

  it('the catalogue of operations accepts only results that match a kind’s schema', () => {
    assert.deepEqual(readResult('agent.push', { commitSha: null }), { commitSha: null })
    assert.equal(readResult('agent.push', { step: 1 }), undefined)
  })
})
