/**
 * Writes `docs/contract.md` if the records of one or more runs, made by `scripts/ci/reporter.ts`, prove every row of
 * the contract. With `--check` it writes nothing, ignores files that did not run, and fails if the page is out of date:
 * `node test/contract/report/write.ts [--check] <records.jsonl>…`
 */
import { readFile, writeFile } from 'node:fs/promises'
import { parseArgs } from 'node:util'
import { flawsOf, renderPage } from './page.ts'
import { filesOf, passedProofs } from './proofs.ts'
import { sections } from './rows.ts'

const PAGE = new URL('../../../docs/contract.md', import.meta.url)
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { check: { type: 'boolean', default: false } },
})
const lines = (await Promise.all(positionals.map((path) => readFile(path, 'utf8')))).join('').split('\n')
const records = lines.filter(Boolean).map((line) => JSON.parse(line))
const flaws = flawsOf(sections, passedProofs(records), values.check ? filesOf(records) : undefined)
if (values.check && (await readFile(PAGE, 'utf8')) !== renderPage(sections))
  flaws.push('docs/contract.md is out of date: run `npm run docs:contract`')
for (const flaw of flaws) console.error(`✖ contract ${flaw}`)
if (flaws.length > 0) process.exitCode = 1
else if (!values.check) await writeFile(PAGE, renderPage(sections))
