/**
 * Keeps Berth's texts in plain English: counts what rules.ts finds in comments, docs, test names and messages.
 *
 *   npm run prose            folders beyond the limit, each with its hits; exit code 1 if there are any
 *   npm run prose -- PATH…   every hit in these files and folders
 */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { RULES } from './rules.ts'
import { textsOf } from './texts.ts'

/** Hits per 1,000 words, or per part of them. */
const LIMIT = 1.5
const READ = /\.(ts|tsx|mjs|md|prisma|sql|sh|ya?ml)$|(^|\/)(Dockerfile|Procfile)$/
/** Made by programs, or a list of what to avoid; SQL that was released stays as it was applied. */
const SKIPPED =
  /^(src\/db\/generated|dashboard\/dist|clients\/cli\/dist|test\/fixtures|prisma\/migrations|scripts\/prose)\/|^clients\/typescript\/src\/schema\.ts$|^CHANGELOG\.md$/

interface Folder {
  words: number
  hits: string[]
}

const sentences = new Intl.Segmenter('en', { granularity: 'sentence' })
const paths = process.argv.slice(2)
const listed = execFileSync('git', ['ls-files', '-co', '--exclude-standard', '--', ...paths], {
  encoding: 'utf8',
})
const folders = new Map<string, Folder>()

for (const path of listed.split('\n')) {
  if (!READ.test(path) || SKIPPED.test(path)) continue
  const name = path.split('/').slice(0, -1).slice(0, 2).join('/') || '.'
  const folder = folders.get(name) ?? { words: 0, hits: [] }
  folders.set(name, folder)
  for (const { line, text } of textsOf(path, readFileSync(path, 'utf8')))
    check(folder, `${path}:${line}`, text)
}

function check(folder: Folder, place: string, text: string): void {
  // Code in a sentence is one word, whatever stops it has.
  const plain = text
    .replace(/`[^`]*`/g, '`x`')
    .replace(/\]\([^)]*\)/g, ']')
    .replace(/\s+/g, ' ')
  for (const { segment } of sentences.segment(plain)) {
    const sentence = segment.trim()
    folder.words += sentence.split(' ').filter((word) => /\w/.test(word)).length
    for (const { name, pattern, instead } of RULES)
      if (pattern.test(sentence)) folder.hits.push(`${place}: ${name}: ${sentence}\n    write ${instead}`)
  }
}

let failed = 0
for (const [name, { words, hits }] of folders) {
  const most = Math.ceil(words / 1000) * LIMIT
  if (hits.length === 0 || (paths.length === 0 && hits.length <= most)) continue
  if (hits.length > most) failed++
  console.log(`${hits.join('\n')}\n${name}: ${hits.length} hits in ${words} words, at most ${most}\n`)
}
console.log(
  failed ? `${failed} folders exceed the limit: scripts/prose/README.md` : 'the texts are within the limit',
)
process.exitCode = failed ? 1 : 0
