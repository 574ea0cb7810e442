import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { stripVTControlCharacters } from 'node:util'
import { MarkdownWriter, renderLine } from './markdown.ts'
import { widthOf } from './terminal.ts'

/** Up, clear, line breaks, text, and styles. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: the terminal's own sequences.
const PARTS = /\x1b\[\d+A|\x1b\[J|\r|\n|[^\x1b\r\n]+|\x1b\[[\d;]*m/g

/** A terminal of a fixed width that shows what is on it. */
class Screen {
  readonly isTTY = true
  readonly columns = 20
  readonly #lines: string[] = ['']
  #row = 0
  #column = 0

  write(text: string): boolean {
    for (const [part] of text.matchAll(PARTS)) {
      if (part === '\r') this.#column = 0
      else if (part === '\n') {
        this.#row++
        this.#column = 0
        this.#lines[this.#row] ??= ''
      } else if (part === '\x1b[J') this.#lines.length = this.#row + 1
      else if (part.endsWith('A')) this.#row -= Number(part.slice(2, -1))
      else if (!part.startsWith('\x1b')) {
        const line = this.#lines[this.#row] ?? ''
        this.#lines[this.#row] = line.slice(0, this.#column) + part
        this.#column += part.length
        assert.ok(this.#column < this.columns, `${part} does not wrap`)
      }
      if (part === '\x1b[J') this.#lines[this.#row] = ''
    }
    return true
  }
  get text(): string {
    return this.#lines.join('\n').trimEnd()
  }
}

const render = (line: string, room = 80) =>
  renderLine(line, { isCode: false, room }).map(stripVTControlCharacters)

describe('markdown in a terminal', () => {
  const source =
    'A reply with **bold words** and `code`:\n\n- one item that is long\n```sh\nls -la\n```\ndone'
  const shown = [
    ...[
      'A reply with bold',
      'words and code:',
      '',
      '• one item that is',
      '  long',
      '```sh',
      'ls -la',
      '```',
      'done',
    ],
  ].join('\n')
  for (const size of [1, 3, 1000])
    it(`looks the same however it arrives: ${size} characters at a time`, () => {
      const screen = new Screen()
      const writer = new MarkdownWriter(screen as never)
      for (let at = 0; at < source.length; at += size) writer.write(source.slice(at, at + size))
      writer.end()
      assert.equal(screen.text, shown)
    })
  it('marks become styles, and marks without an end stay', () => {
    assert.deepEqual(render('# Head'), ['Head'])
    assert.deepEqual(render('> quoted'), ['│ quoted'])
    assert.deepEqual(render('  1. [x] done'), ['  ☑ done'])
    assert.deepEqual(render('2 * 3 * 4 and snake_case_name and **open'), [
      '2 * 3 * 4 and snake_case_name and **open',
    ])
    assert.deepEqual(render('see [docs](https://x.org/a)'), ['see docs (https://x.org/a)'])
  })
  it('words longer than the terminal are broken', () => {
    const lines = render('x'.repeat(50), 20)
    assert.equal(lines.join(''), 'x'.repeat(50))
    assert.ok(lines.every((line) => widthOf(line) < 20))
  })
  it('a reply cannot send escape sequences', () => {
    const screen = new Screen()
    new MarkdownWriter(screen as never).write('a\x1b]0;title\x07b\x1b[2Jc')
    assert.equal(screen.text, 'abc')
  })
})
