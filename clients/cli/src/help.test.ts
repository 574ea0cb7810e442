/** The table of commands in `docs/cli.md`, and help texts. `npm run docs:cli` writes the table. */
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { COMMANDS } from './commands.ts'
import { EXIT } from './errors.ts'
import { commandHelp, familyHelp, overview } from './help.ts'

const PAGE = new URL('../../../docs/cli.md', import.meta.url)
const TABLE = /(?<=<!-- commands -->\n).*(?=<!-- \/commands -->)/s

const rows = COMMANDS.map(({ name, usage, summary, options }) => {
  const own = Object.entries(options).map(
    ([option, { value }]) => `\`--${option}${value ? ` <${value}>` : ''}\``,
  )
  return `| \`berth ${name}${usage && ` ${usage}`}\` | ${summary} | ${own.join(', ')} |`
})
const table = ['| command | what it does | options |', '|---|---|---|', ...rows, ''].join('\n')

describe('help', () => {
  it('docs/cli.md has the table of all commands', () => {
    const page = readFileSync(PAGE, 'utf8')
    const right = page.replace(TABLE, () => table)
    if (process.env.BERTH_TEST_DOCS === 'write') writeFileSync(PAGE, right)
    else assert.ok(page === right, 'run `npm run docs:cli`')
  })
  it('docs/cli.md has all exit codes', () => {
    const page = readFileSync(PAGE, 'utf8')
    for (const code of Object.values(EXIT)) assert.match(page, new RegExp(`^\\| ${code} \\| `, 'm'))
  })
  it('every command is within its family’s help, and fits a terminal', () => {
    for (const command of COMMANDS) {
      const [first = ''] = command.name.split(' ')
      assert.match(overview(), new RegExp(`^ {2}${first} `, 'm'))
      assert.match(familyHelp([first]), new RegExp(`^ {2}${command.name} `, 'm'))
      for (const line of commandHelp(command).split('\n')) assert.ok(line.length <= 100, line)
    }
  })
})
