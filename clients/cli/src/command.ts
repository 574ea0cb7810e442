/** Commands as a table: arguments, help, completion and the page of the commands come from the same entries. */
import { parseArgs } from 'node:util'
import type { Berth } from '../../typescript/src/index.ts'
import { UsageError } from './errors.ts'
import type { Target } from './profiles.ts'

export interface Option {
  about: string
  /** The placeholder of its value; without one, the option is a switch. */
  value?: string
  short?: string
  /** It may be repeated. */
  many?: boolean
  choices?: readonly string[]
}
export type Options = Record<string, Option>

type Value<O extends Option> = O extends { many: true }
  ? string[]
  : O extends { value: string }
    ? string | undefined
    : boolean
export type Values<O extends Options> = { [Name in keyof O]: Value<O[Name]> }

/** The input of a command. */
export interface Call<O extends Options = Options> {
  args: string[]
  options: Values<O>
  /** The API with the chosen key. @throws Error if nobody is signed in. */
  readonly berth: Berth
  /** @throws Error if nobody is signed in. */
  readonly target: Target
  /** The value of `--profile`. */
  profile: string | undefined
  json: boolean
  /** Aborts at Ctrl-C, unless the command handles it. */
  signal: AbortSignal
}

/** The output of a command: data with `--json`, and otherwise a text. */
export interface Shown {
  data: unknown
  text: string
}

export interface Command {
  /** Such as `agents exec`. */
  name: string
  summary: string
  /** Such as `<agent> [path] <words...>`. */
  usage: string
  options: Options
  /** Arguments after the first belong to another program: they are not read as options. */
  isOpenEnded?: boolean
  /** Paragraphs and examples of its help. */
  more?: string
  run(call: Call): Promise<Shown | undefined>
}

/** Declares a command; its `run` gets typed options. */
export function command<const O extends Options = Record<never, never>>(entry: {
  name: string
  summary: string
  usage?: string
  options?: O
  isOpenEnded?: boolean
  more?: string
  run(call: Call<O>): Promise<Shown | undefined>
}): Command {
  return { usage: '', options: {}, ...entry } as unknown as Command
}

/** Options of every command. */
export const GLOBAL = {
  json: { about: 'print JSON' },
  profile: { about: 'use this profile instead of the current one', value: 'name', short: 'p' },
  help: { about: 'show this help', short: 'h' },
} as const satisfies Options

/** @throws UsageError */
export function parse(command: Command, words: string[]): { args: string[]; options: Values<Options> } {
  const all: Options = { ...command.options, ...GLOBAL }
  const spec = specOf(all)
  const own = command.isOpenEnded ? upToFirst(words, spec) : words.length
  const { values, positionals } = read(words.slice(0, own), spec)
  const rest = words.slice(own)
  const args = [...positionals, ...(rest[0] === '--' ? rest.slice(1) : rest)]
  const options: Record<string, unknown> = {}
  for (const [name, { value, many, choices }] of Object.entries(all)) {
    const given = values[name] ?? (many ? [] : value ? undefined : false)
    for (const one of choices ? [given].flat() : [])
      if (one !== undefined && !choices?.includes(String(one)))
        throw new UsageError(`--${name}: ${one} is none of ${choices?.join(', ')}`)
    options[name] = given
  }
  if (!options.help) checkCount(command, args)
  return { args, options: options as Values<Options> }
}

/** The arguments and the profile in an unfinished command line. */
export function readLoosely(
  command: Command,
  words: string[],
): { args: string[]; profile: string | undefined } {
  const options = specOf({ ...command.options, ...GLOBAL })
  const { values, positionals } = parseArgs({ args: words, options, strict: false, allowPositionals: true })
  return { args: positionals, profile: typeof values.profile === 'string' ? values.profile : undefined }
}

/** The options as Node's parser takes them. */
const specOf = (options: Options): Spec =>
  Object.fromEntries(
    Object.entries(options).map(([name, { value, short, many }]) => [
      name,
      { type: value ? 'string' : 'boolean', ...(short && { short }), ...(many && { multiple: true }) },
    ]),
  )

type Spec = Record<string, { type: 'string' | 'boolean'; short?: string; multiple?: boolean }>

function read(args: string[], options: Spec) {
  try {
    return parseArgs({ args, options, allowPositionals: true })
  } catch (error) {
    // The rest of Node's message suggests `--` for a positional.
    throw new UsageError((error as Error).message.split('. ')[0] ?? '')
  }
}

/** How many words belong to the command itself, which ends at its first argument. */
function upToFirst(words: string[], options: Spec): number {
  const { tokens } = parseArgs({ args: words, options, strict: false, allowPositionals: true, tokens: true })
  const first = tokens.find(({ kind }) => kind === 'positional')
  return first ? first.index + 1 : words.length
}

export interface Argument {
  name: string
  isOptional: boolean
  isMany: boolean
}

/** The arguments that a usage names. */
export const argumentsOf = (usage: string): Argument[] =>
  usage
    .split(' ')
    .filter(Boolean)
    .map((word) => ({
      name: word.replace(/^[<[]|\.{3}|[>\]]$/g, ''),
      isOptional: word.startsWith('['),
      isMany: word.includes('...'),
    }))

function checkCount(command: Command, args: string[]): void {
  const known = argumentsOf(command.usage)
  const missing = known.filter(({ isOptional }) => !isOptional)[args.length]
  if (missing) throw new UsageError(`${missing.name} is missing`)
  if (args.length > known.length && !known.at(-1)?.isMany)
    throw new UsageError(`${JSON.stringify(args[known.length])} is one argument too many`)
}
