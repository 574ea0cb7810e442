/** The page that shows each row of the contract with its proofs. It is the same for every run in which all passed. */
import type { Row, Section } from './rows.ts'

const INTRODUCTION = `# The contract, row by row

Each row of the service's contract, in our own words, and the tests that prove it. Made by \`npm run docs:contract\`
from a run of the contract suite; a row without a proof, or with one that did not pass, fails that run. With
\`BERTH_TEST_STACK=real\` the suite runs on real PostgreSQL, Redis, Kubo and Docker.

Besides, whatever a test asks, every answer is held against \`/openapi.json\`: its status, its shape, and that an error
is \`{"error": "<message>"}\` and nothing more.
`

/** Why a row is not proven; undefined when it is. @param passed what passed, as {@link Row} names it. */
export function flawOf([says, ...proofs]: Row, passed: ReadonlySet<string>): string | undefined {
  if (proofs.length === 0) return `${says}: no test proves it`
  const missing = proofs.filter((proof) => !passed.has(proof))
  return missing.length > 0 ? `${says}: did not pass: ${missing.join('; ')}` : undefined
}

/** The page, in Markdown. */
export function renderPage(sections: Section[], passed: ReadonlySet<string>): string {
  const rows = sections.flatMap((section) => section.rows)
  const proofs = new Set(rows.flatMap(([, ...names]) => names))
  const count = `${rows.length} rows, proven by ${proofs.size} tests.\n`
  return [INTRODUCTION, count, ...sections.map((section) => renderSection(section, passed))].join('\n')
}

function renderSection({ title, rows }: Section, passed: ReadonlySet<string>): string {
  const lines = rows.map((row) => {
    const [says, ...proofs] = row
    const cell = flawOf(row, passed) ? '**not proven**' : proofs.map(renderProof).join('<br>')
    return `| ${escapeCell(says)} | ${cell} |`
  })
  return [`## ${title}`, '', '| What it says | Proof |', '|---|---|', ...lines, ''].join('\n')
}

function renderProof(proof: string): string {
  const [file = '', ...names] = proof.split(' > ')
  return `[${file}](../test/contract/${file}.test.ts): ${escapeCell(escapeHtml(names.at(-1) ?? ''))}`
}

const escapeCell = (text: string) => text.replaceAll('|', '\\|').replace(/\s+/g, ' ')
const escapeHtml = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
