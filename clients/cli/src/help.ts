/** Help, from the table of commands. */
import { type Command, GLOBAL, type Options } from './command.ts'
import { COMMANDS } from './commands.ts'
import { FAMILIES } from './families.ts'
import { OPERATOR } from './operator.ts'
import { padEnd, paint, widthOf } from './terminal.ts'

/** Commands in the order of the table, by their first word. */
function families(): Map<string, Command[]> {
  const found = new Map<string, Command[]>()
  for (const command of COMMANDS) {
    const [first = ''] = command.name.split(' ')
    found.set(first, [...(found.get(first) ?? []), command])
  }
  return found
}

/** `berth --help` */
export function overview(): string {
  const users: [string, string][] = Array.from(families(), ([first, commands]) => [
    first,
    FAMILIES[first] ?? commands[0]?.summary ?? '',
  ])
  return [
    `Usage: ${paint('bold', 'berth')} <command>`,
    section('Your files and agents, on any Berth', users),
    section('For operators, where Berth runs', Object.entries(OPERATOR)),
    `${paint('bold', 'berth <command> --help')} explains a command.`,
  ].join('\n\n')
}

/** `berth agents --help` */
export function familyHelp(words: string[]): string {
  const prefix = `${words.join(' ')} `
  const commands = COMMANDS.filter(({ name }) => `${name} `.startsWith(prefix))
  const rows = commands.map(({ name, usage, summary }): [string, string] => [
    `${name} ${usage}`.trim(),
    summary,
  ])
  return [`Usage: ${paint('bold', `berth ${words.join(' ')}`)} <command>`, section('Commands', rows)].join(
    '\n\n',
  )
}

/** `berth agents exec --help` */
export function commandHelp({ name, usage, summary, options, more }: Command): string {
  const parts = [
    `Usage: ${paint('bold', `berth ${name}`)}${usage && ` ${usage}`} [options]`,
    `${summary[0]?.toUpperCase()}${summary.slice(1)}.`,
    section('Options', [...optionRows(options), ...optionRows(GLOBAL)]),
  ]
  if (more) parts.splice(2, 0, more)
  return parts.join('\n\n')
}

const optionRows = (options: Options): [string, string][] =>
  Object.entries(options).map(([name, { about, value, short, choices }]) => [
    `${short ? `-${short}, ` : '    '}--${name}${value ? ` <${value}>` : ''}`,
    choices ? `${about}: ${choices.join(', ')}` : about,
  ])

function section(title: string, rows: [string, string][]): string {
  const width = Math.max(...rows.map(([name]) => widthOf(name)))
  return [paint('bold', title), ...rows.map(([name, text]) => `  ${padEnd(name, width)}  ${text}`)].join('\n')
}
