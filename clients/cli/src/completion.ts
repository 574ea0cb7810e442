/** Completion for shells. Their scripts ask `berth __complete <words>`, which reads the table of commands. */
import { argumentsOf, type Command, GLOBAL, type Options } from './command.ts'
import { COMMANDS } from './commands.ts'
import { OPERATOR } from './operator.ts'
import { readProfiles } from './profiles.ts'
import { SHELLS } from './shells.ts'

export interface Candidate {
  word: string
  about: string
}

/** The candidates for the last of these words, which is a beginning or empty. */
export function complete(words: string[]): Candidate[] {
  const typed = words.at(-1) ?? ''
  const before = words.slice(0, -1)
  return candidates(before, typed).filter(({ word }) => word.startsWith(typed))
}

function candidates(before: string[], typed: string): Candidate[] {
  const names = before.filter((word) => !word.startsWith('-'))
  const command = COMMANDS.find(({ name }) => `${names.join(' ')} `.startsWith(`${name} `))
  if (!command) return nextNames(names)
  const options: Options = { ...command.options, ...GLOBAL }
  const asked = options[before.at(-1)?.replace(/^--/, '') ?? '']
  if (asked?.choices) return asked.choices.map((word) => ({ word, about: '' }))
  if (asked?.value === 'name' && before.at(-1) === '--profile') return profileNames()
  if (asked?.value) return []
  if (typed.startsWith('-'))
    return Object.entries(options).map(([name, { about }]) => ({ word: `--${name}`, about }))
  return argumentChoices(command, names.length - command.name.split(' ').length)
}

function nextNames(names: string[]): Candidate[] {
  const prefix = names.length === 0 ? '' : `${names.join(' ')} `
  const found = new Map<string, string>()
  for (const { name, summary } of COMMANDS) {
    if (!name.startsWith(prefix)) continue
    const [word = ''] = name.slice(prefix.length).split(' ')
    if (!found.has(word)) found.set(word, name === prefix + word ? summary : '')
  }
  if (names.length === 0) for (const [word, about] of Object.entries(OPERATOR)) found.set(word, about)
  return Array.from(found, ([word, about]) => ({ word, about }))
}

function argumentChoices(command: Command, position: number): Candidate[] {
  const argument = argumentsOf(command.usage)[position]
  if (argument?.name === 'profile') return profileNames()
  if (argument?.name === 'shell') return SHELLS.map((word) => ({ word, about: '' }))
  return []
}

const profileNames = (): Candidate[] =>
  Object.entries(readProfiles().profiles).map(([word, { url }]) => ({ word, about: url }))
