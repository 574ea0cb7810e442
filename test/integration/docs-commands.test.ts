/** Every command in the documents is run by some CI step, and the runner detects commands that fail. */
import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { runCommands, shellBlocks, TAGS } from '../../scripts/ci/docs-commands.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

describe('the commands of the documents', () => {
  for (const name of ['README.md', 'docs/operations.md', 'docs/kubernetes.md']) {
    it(`each shell block in ${name} names the step that runs it`, () => {
      const blocks = shellBlocks(readFileSync(join(ROOT, name), 'utf8'))
      assert.ok(blocks.length > 2)
      const untold = blocks.filter(({ tag }) => !(tag in TAGS)).map(({ line }) => `${name}:${line}`)
      assert.deepEqual(untold, [])
    })
  }
})

describe('running a document’s commands', () => {
  const dir = mkdtempSync(join(tmpdir(), 'berth-docs-test-'))
  after(() => rmSync(dir, { recursive: true }))
  const run = (markdown: string, env: NodeJS.ProcessEnv = {}) => {
    const file = join(dir, 'page.md')
    writeFileSync(file, markdown)
    return runCommands(file, 'start', { cwd: dir, env: { PATH: process.env.PATH, ...env }, quiet: true })
  }
  const block = (commands: string, info = 'sh start') => `\`\`\`${info}\n${commands}\n\`\`\`\n`

  it('running a document’s commands runs the blocks of one tag in order in one shell', async () => {
    const page = `# Page\n${block('a=1')}${block('echo other', 'sh compose')}${block('echo text', 'text')}${block('echo "a=$a $B"')}`
    const { code, output } = await run(page, { B: '2' })
    assert.equal(code, 0, output)
    assert.match(output, /^a=1 2$/m)
    assert.doesNotMatch(output, /other|text/)
  })

  for (const [what, command] of [
    ['a command that fails', 'false'],
    ['one at the front of a pipe', 'false | cat'],
    ['a variable that is not set', 'echo "$NOT_SET"'],
  ] as const) {
    it(`running a document’s commands stops at ${what} and reports its line`, async () => {
      const { code, output } = await run(`# Page\n\n${block(`true\n${command}\necho after`)}`)
      assert.notEqual(code, 0)
      assert.match(output, /page\.md:(?: line )?5\b/)
      assert.doesNotMatch(output, /^after$/m)
    })
  }

  it('running a document’s commands ends their background processes', async () => {
    const { code, output } = await run(`# Page\n${block('sleep 1000 &\necho after')}`)
    assert.equal(code, 0, output)
    assert.match(output, /^after$/m)
  })

  it('running a document’s commands replaces the documented port by PORT', async () => {
    const { output } = await run(`# Page\n${block('echo http://a.localhost:3000/x')}`, { PORT: '4001' })
    assert.match(output, /^http:\/\/a\.localhost:4001\/x$/m)
  })

  it('running a document’s commands fails if no block has the tag', async () => {
    await assert.rejects(run('# Page\n'), /no block/)
  })
})
