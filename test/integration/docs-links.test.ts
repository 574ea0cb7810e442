/** Links between the documents lead to existing files and headings. */
import assert from 'node:assert/strict'
import { existsSync, globSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { it } from 'node:test'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const DOCUMENTS = ['*.md', 'docs/*.md', 'src/*/README.md', 'agentd/README.md']

/** The text without blocks of code. */
const read = (file: string): string => readFileSync(file, 'utf8').replace(/^```[\s\S]*?^```/gm, '')

/** The anchors of a document's headings, as GitHub generates them. */
const anchorsOf = (file: string): string[] =>
  [...read(file).matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  )

it('the documents link to existing files and headings', () => {
  const documents = globSync(DOCUMENTS, { cwd: ROOT }).map((file) => join(ROOT, file))
  assert.ok(documents.length > 20)
  const dead = documents.flatMap((document) =>
    [...read(document).matchAll(/\]\((?![a-z]+:)([^)\s#]*)(?:#([^)\s]+))?\)/g)].flatMap(
      ([link, path = '', anchor]) => {
        const target = path ? join(dirname(document), path) : document
        const isThere = existsSync(target)
        const isDead =
          !isThere || (anchor && !(statSync(target).isFile() && anchorsOf(target).includes(anchor)))
        return isDead ? [`${relative(ROOT, document)}: ${link}`] : []
      },
    ),
  )
  assert.deepEqual(dead, [])
})
