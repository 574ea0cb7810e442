/** `berth`: finds the command, runs it, and prints its result or what went wrong. */
import { type Berth, createClient } from '../../typescript/src/index.ts'
import client from '../package.json' with { type: 'json' }
import { type Call, type Command, parse, type Shown } from './command.ts'
import { COMMANDS } from './commands.ts'
import { complete } from './completion.ts'
import { EXIT, type Explained, explain, UsageError } from './errors.ts'
import { commandHelp, familyHelp, overview } from './help.ts'
import { splitLine } from './line.ts'
import { OPERATOR } from './operator.ts'
import { chooseTarget, type Target } from './profiles.ts'
import { paint } from './terminal.ts'

/** Aborts requests at Ctrl-C. */
const interrupt = new AbortController()
let target: Target | undefined

export async function main(words: string[]): Promise<void> {
  if (words[0] === '__complete') {
    const found = await complete(words.slice(words[1] === '--' ? 2 : 1))
    for (const { word, about } of found) console.log(about ? `${word}\t${about}` : word)
    return
  }
  if (words[0] === '--version' || words[0] === '-V') return console.log(client.version)
  if (words.length === 0 || words[0] === '--help' || words[0] === '-h' || words[0] === 'help')
    return console.log(words.length > 1 && words[0] === 'help' ? helpFor(words.slice(1)) : overview())
  const { command, names, words: given } = splitLine(words)
  if (!command) {
    if (COMMANDS.some(({ name }) => name.startsWith(`${names.join(' ')} `))) {
      console.log(familyHelp(names))
      if (!words.includes('--help') && !words.includes('-h')) process.exitCode = EXIT.usage
      return
    }
    return fail({ message: unknown(names), exit: EXIT.usage }, words)
  }
  process.once('SIGINT', () => {
    // The terminal shows `^C` without a line break.
    if (process.stderr.isTTY) process.stderr.write('\n')
    interrupt.abort()
    process.exitCode = EXIT.interrupted
  })
  try {
    await run(command, given)
  } catch (error) {
    if (interrupt.signal.aborted) return
    const explained = explain(error, target?.url)
    if (error instanceof UsageError) explained.advice = `berth ${command.name} --help`
    fail(explained, words)
  }
}

async function run(command: Command, words: string[]): Promise<void> {
  const { args, options } = parse(command, words)
  if (options.help) return console.log(commandHelp(command))
  const profile = options.profile as unknown as string | undefined
  const find = (): Target => {
    target ??= chooseTarget(profile)
    return target
  }
  let berth: Berth | undefined
  const call: Call = {
    ...{ args, options, profile, json: Boolean(options.json), signal: interrupt.signal },
    get target() {
      return find()
    },
    get berth() {
      berth ??= createClient({ ...find(), headers: { 'user-agent': `berth/${client.version}` } })
      return berth
    },
  }
  const shown = await command.run(call)
  if (shown) print(shown, call.json)
}

function print({ data, text }: Shown, json: boolean): void {
  const out = json ? JSON.stringify(data, null, 2) : text
  if (out !== '') console.log(out)
}

function helpFor(words: string[]): string {
  const { command } = splitLine(words)
  return command ? commandHelp(command) : familyHelp(words)
}

function unknown(names: string[]): string {
  const said = names.slice(0, 2).join(' ')
  if (names[0] !== undefined && Object.hasOwn(OPERATOR, names[0]))
    return `berth ${names[0]} is for operators: run it where Berth is installed, or with npx berth in its folder`
  const near = COMMANDS.map(({ name }) => name).find(
    (name) => isNear(name, said) || isNear(name, names[0] ?? ''),
  )
  return `unknown command '${said}'${near ? `: did you mean ${near}?` : ''}`
}

/** Whether two words are the same except for one letter. */
function isNear(a: string, b: string): boolean {
  if (Math.abs(a.length - b.length) > 1 || a === b) return a === b
  let at = 0
  while (at < a.length && a[at] === b[at]) at++
  return (
    a.slice(at + 1) === b.slice(at + 1) || a.slice(at) === b.slice(at + 1) || a.slice(at + 1) === b.slice(at)
  )
}

function fail({ message, advice, exit }: Explained, words: string[]): void {
  if (words.includes('--json')) console.error(JSON.stringify({ error: message, advice, exit }))
  else {
    console.error(`${paint('red', 'error:', process.stderr)} ${message}`)
    if (advice) console.error(paint('dim', `  ${advice}`, process.stderr))
  }
  process.exitCode = exit
}

// A reader such as `head` may close early.
for (const stream of [process.stdout, process.stderr])
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error
    process.exit()
  })
await main(process.argv.slice(2))
