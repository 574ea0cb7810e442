/** Finds the texts that people read in a file: comments, test names, tables of strings, and prose in Markdown. */

export interface Text {
  /** 1-based. */
  line: number
  text: string
}

const TOKEN =
  /\/\*[\s\S]*?\*\/|(?:\/\/.*(?:\n[ \t]*)?)+|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\[\s\S]|[^`\\])*`/g
/** Files whose strings are texts for users. */
const TABLES = /^(dashboard\/src\/texts|src\/(errors|settings|[a-z]+-settings|cli\/main))\.ts$/
const NAMED = /\b(it|test|describe)(\.\w+)*\(\s*$/

/** @param path of the file, relative to the root of the repository; its ending decides how it is read. */
export function textsOf(path: string, source: string): Text[] {
  if (/\.(ts|tsx|mjs)$/.test(path)) return ofCode(path, source)
  if (path.endsWith('.md')) return ofMarkdown(source)
  const mark = path.endsWith('.prisma') ? /^\s*\/\/+/ : path.endsWith('.sql') ? /^\s*--/ : /^\s*#(?!!)/
  return ofLines(source, mark)
}

function ofCode(path: string, source: string): Text[] {
  const texts: Text[] = []
  for (const { 0: token, index } of source.matchAll(TOKEN)) {
    const line = source.slice(0, index).split('\n').length
    if (token.startsWith('/')) {
      texts.push({ line, text: token.replace(/^\/\*+|\*\/$/g, '').replace(/^[ \t]*(\*|\/\/+) ?/gm, '') })
      continue
    }
    const text = token.slice(1, -1).replace(/\$\{[^}]*\}/g, 'x')
    const isName = NAMED.test(source.slice(Math.max(0, index - 40), index))
    // A test name is a sentence without its capital.
    if (isName) texts.push({ line, text: text.charAt(0).toUpperCase() + text.slice(1) })
    else if (TABLES.test(path) && text.includes(' ')) texts.push({ line, text })
  }
  return texts
}

/** Paragraphs, list items and cells; no headings, code, or parts that a program writes. */
function ofMarkdown(source: string): Text[] {
  const texts: Text[] = []
  let isCode = false
  let isGenerated = /^This page is (made|generated)/m.test(source)
  let continues = false
  for (const [i, line] of source.split('\n').entries()) {
    const mark = /^<!-- ?(\/|end)?/.exec(line)
    if (/^\s*(```|~~~)/.test(line)) isCode = !isCode
    else if (mark) isGenerated = !mark[1]
    const isProse = !isCode && !isGenerated && /\w/.test(line) && !/^(#|<!--|\s*(```|~~~))/.test(line)
    const last = texts.at(-1)
    const isItem = /^\s*([-*>|]|\d+\.) ?/.test(line)
    if (!isProse) continues = false
    else if (continues && !isItem && last) last.text += `\n${line}`
    else {
      for (const text of line.split('|'))
        texts.push({ line: i + 1, text: text.replace(/^\s*([-*>]|\d+\.) /, '') })
      continues = !line.startsWith('|')
    }
  }
  return texts
}

/** Runs of lines that are comments. */
function ofLines(source: string, mark: RegExp): Text[] {
  const texts: Text[] = []
  let before = -1
  for (const [i, line] of source.split('\n').entries()) {
    if (!mark.test(line)) continue
    const text = line.replace(mark, '').trim()
    const last = texts.at(-1)
    if (last && before === i - 1) last.text += `\n${text}`
    else texts.push({ line: i + 1, text })
    before = i
  }
  return texts
}
