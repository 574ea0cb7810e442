/** Finds the command in a command line. */
import type { Command } from './command.ts'
import { COMMANDS } from './commands.ts'

export interface Line {
  /** Undefined if no command has this name. */
  command: Command | undefined
  /** The words before the first option, without those of the command. */
  names: string[]
  /** Options and arguments. */
  words: string[]
}

/** Splits a command line. `--profile` and `--json` may come before the command. */
export function splitLine(line: string[]): Line {
  let lead = 0
  while (/^(--json|--profile=.*|--profile|-p)$/.test(line[lead] ?? ''))
    lead += ['--profile', '-p'].includes(line[lead] ?? '') ? 2 : 1
  const rest = line.slice(lead)
  const command = COMMANDS.find(({ name }) => `${rest.join(' ')} `.startsWith(`${name} `))
  const after = rest.slice(command?.name.split(' ').length ?? 0)
  const option = after.findIndex((word) => word.startsWith('-'))
  return {
    command,
    names: option < 0 ? after : after.slice(0, option),
    words: [...line.slice(0, lead), ...after],
  }
}
