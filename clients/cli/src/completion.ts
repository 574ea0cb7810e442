/** Completion for shells. Their scripts ask `berth __complete <words>`, which reads the table of commands. */

import { createClient, unwrap } from '../../typescript/src/index.ts'
import { argumentsOf, type Command, GLOBAL, type Options, readLoosely } from './command.ts'
import { COMMANDS } from './commands.ts'
import { FAMILIES } from './families.ts'
import { splitLine } from './line.ts'
import { OPERATOR } from './operator.ts'
import { chooseTarget, readProfiles } from './profiles.ts'
import { SHELLS } from './shells.ts'
import { harmless } from './terminal.ts'

export interface Candidate {
  word: string
  about: string
}

/** The candidates for the last of these words, which is a beginning or empty. */
export async function complete(words: string[]): Promise<Candidate[]> {
  const typed = words.at(-1) ?? ''
  const before = words.slice(0, -1)
  return (await candidates(before, typed)).filter(({ word }) => word.startsWith(typed))
}

async function candidates(before: string[], typed: string): Promise<Candidate[]> {
  const { command, names, words } = splitLine(before)
  if (!command) return nextNames(names)
  const options: Options = { ...command.options, ...GLOBAL }
  const last = before.at(-1) ?? ''
  const asked = Object.entries(options).find(
    ([name, { short }]) => last === `--${name}` || last === `-${short}`,
  )
  const [name, option] = asked ?? []
  if (option?.choices) return option.choices.map((word) => ({ word, about: '' }))
  if (name === 'profile') return profileNames()
  if (option?.value) return []
  if (typed.startsWith('-'))
    return Object.entries(options).map(([name, { about }]) => ({ word: `--${name}`, about }))
  const { args, profile } = readLoosely(command, words)
  return argumentChoices(command, args.length, profile)
}

function nextNames(names: string[]): Candidate[] {
  const prefix = names.length === 0 ? '' : `${names.join(' ')} `
  const found = new Map<string, string>()
  for (const { name, summary } of COMMANDS) {
    if (!name.startsWith(prefix)) continue
    const [word = ''] = name.slice(prefix.length).split(' ')
    if (!found.has(word)) found.set(word, name === prefix + word ? summary : (FAMILIES[prefix + word] ?? ''))
  }
  if (names.length === 0) for (const [word, about] of Object.entries(OPERATOR)) found.set(word, about)
  return Array.from(found, ([word, about]) => ({ word, about }))
}

async function argumentChoices(
  command: Command,
  position: number,
  profile: string | undefined,
): Promise<Candidate[]> {
  const argument = argumentsOf(command.usage)[position]
  if (argument?.name === 'agent') return agentNames(profile)
  if (argument?.name === 'profile') return profileNames()
  if (argument?.name === 'shell') return SHELLS.map((word) => ({ word, about: '' }))
  return []
}

/** A person who waits for a completion waits no longer. */
const AGENTS_MS = 1500

/** Agents by name, or by id if a shell would have to quote the name. */
async function agentNames(profile: string | undefined): Promise<Candidate[]> {
  try {
    const signal = AbortSignal.timeout(AGENTS_MS)
    const berth = createClient({ ...chooseTarget(profile), retries: 0 })
    const { agents } = await unwrap(berth.GET('/v0/agents', { signal }))
    return agents.map(({ agentId, name, status }) =>
      /^[\w.-]+$/.test(name) ? { word: name, about: status } : { word: agentId, about: harmless(name) },
    )
  } catch {
    return []
  }
}

const profileNames = (): Candidate[] =>
  Object.entries(readProfiles().profiles).map(([word, { url }]) => ({ word, about: url }))
