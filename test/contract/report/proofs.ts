/** Proofs of the contract: which tests passed in runs, and which tests a file's source declares. */
import { relative } from 'node:path'
import type { TestRecord } from '../../../scripts/ci/records.ts'

/** The tests that passed at least once, named as in `Row`. Other lines, such as a run's command, are ignored. */
export const passedProofs = (records: TestRecord[]): Set<string> =>
  new Set(
    records
      .filter(({ status, type }) => status === 'passed' && type === 'test')
      .map(({ file, names }) => [nameOf(file), ...names].join(' > ')),
  )

/** The test files of records, named as in `Row`. */
export const filesOf = (records: TestRecord[]): Set<string> =>
  new Set(records.flatMap(({ file }) => file && nameOf(file)))

const nameOf = (file: string) => relative('test/contract', file).replace(/\.test\.ts$/, '')

const EXPRESSION = /\$\{(?:[^{}`]|\{[^{}]*\}|`[^`]*`)*\}/
const TEMPLATE = RegExp(`\`(?:${EXPRESSION.source}|\\$(?!\\{)|[^\`\\\\$]|\\\\.)*\``)
const TITLE = [/'(?:[^'\\]|\\.)*'/, /"(?:[^"\\]|\\.)*"/, TEMPLATE].map(({ source }) => source).join('|')
/** A line that ends a block, or that begins a suite or a test, with its title if that is a literal. */
const LINE = RegExp(`^( *)(?:\\}|(describe|it)(?=[.(])(?:\\(\\s*(${TITLE}),)?)`, 'gm')

/**
 * Whether the source of a test file declares the test with these names, from the outside in. Suites and tests are
 * recognized by `describe` and `it` at the start of a line, indented by the formatter. The title of the test must be a
 * string or a template. An expression in a template, or in place of a suite's title, matches any text.
 */
export function declares(source: string, names: string[]): boolean {
  let around: { indent: number; title: RegExp }[] = []
  for (const [, indent = '', call, title] of source.matchAll(LINE)) {
    around = around.filter((suite) => suite.indent < indent.length)
    const path = [...around, { indent: indent.length, title: title ? patternOf(title) : /^/ }]
    if (call === 'describe') around = path
    else if (
      title &&
      path.length === names.length &&
      path.every((it, depth) => it.title.test(names[depth] ?? ''))
    )
      return true
  }
  return false
}

function patternOf(literal: string): RegExp {
  const texts = literal.slice(1, -1).split(EXPRESSION)
  const plain = texts.map((text) => text.replace(/\\(.)/g, (_, char) => (char === 'n' ? '\n' : char)))
  return RegExp(`^${plain.map((text) => RegExp.escape(text)).join('.*')}$`, 's')
}
