/** The page that shows each contract row with its proofs. */
import type { Section } from './rows.ts'

const INTRODUCTION = `# The contract, row by row

This page is generated from [rows](../test/contract/report/rows): each row of the service's contract, in our own words,
and the tests that prove it. \`npm run docs:contract\` runs the contract suite and writes the page if every proof
passed. \`npm test\` fails if a row names a test that its file does not declare, or if the page differs from the rows.
CI fails if a proof did not pass in a file that it ran. With \`BERTH_TEST_STACK=real\` the suite runs on real PostgreSQL, Redis,
Kubo and Docker.

In addition, every test checks the responses against \`/openapi.json\`: their status, their shape, and that an error is
\`{"error": "<message>"}\` without further fields.
`

/**
 * Each unproven row with the reason. @param passed the proofs that passed. @param ran the files that ran: a proof in
 * another file waits for its turn.
 */
export const flawsOf = (
  sections: Section[],
  passed: ReadonlySet<string>,
  ran?: ReadonlySet<string>,
): string[] =>
  sections.flatMap(({ title, rows }) =>
    rows.flatMap(([says, ...proofs]) => {
      const due = proofs.filter((proof) => ran?.has(proof.split(' > ')[0] ?? '') ?? true)
      const missing = due.filter((proof) => !passed.has(proof))
      if (proofs.length === 0) return `${title}: ${says}: no test proves it`
      return missing.length > 0 ? `${title}: ${says}: not proven by ${missing.join('; ')}` : []
    }),
  )

/** The page, in Markdown. */
export function renderPage(sections: Section[]): string {
  const rows = sections.flatMap((section) => section.rows)
  const proofs = new Set(rows.flatMap(([, ...names]) => names))
  const count = `${rows.length} rows, proven by ${proofs.size} tests.\n`
  return [INTRODUCTION, count, ...sections.map(renderSection)].join('\n')
}

function renderSection({ title, rows }: Section): string {
  const lines = rows.map(
    ([says, ...proofs]) => `| ${escapeCell(says)} | ${proofs.map(renderProof).join('<br>')} |`,
  )
  return [`## ${title}`, '', '| Rule | Proof |', '|---|---|', ...lines, ''].join('\n')
}

function renderProof(proof: string): string {
  const [file = '', ...names] = proof.split(' > ')
  return `[${file}](../test/contract/${file}.test.ts): ${escapeCell(escapeHtml(names.at(-1) ?? ''))}`
}

const escapeCell = (text: string) => text.replaceAll('|', '\\|').replace(/\s+/g, ' ')
const escapeHtml = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
