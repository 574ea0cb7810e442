/**
 * Writes `docs/settings.md` from the settings' own rules and descriptions, and the table of limits; and the names of
 * settings into docker-compose.yml: `npm run docs:settings`.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { z } from 'zod'
import { EMPTY_MEANS_NONE } from '../src/config.ts'
import { BOUNDS, type Bound } from '../src/lib/bounds.ts'
import { SECRETS, settings } from '../src/settings.ts'
import { withSettings } from './stack-settings.ts'

interface Setting {
  description?: string
  default?: unknown
  enum?: unknown[]
  minimum?: number
  maximum?: number
}

const OUTPUT = new URL('../docs/settings.md', import.meta.url)
const STACK = new URL('../docker-compose.yml', import.meta.url)

/** The page, in Markdown. */
export function settingsPage(): string {
  const rules = (io: 'input' | 'output') =>
    z.toJSONSchema(settings, { io, unrepresentable: 'any' }).properties as Record<string, Setting>
  // The input schema has the values that may be set. Transformed defaults are only in the output schema.
  const [inputs, outputs] = [rules('input'), rules('output')]
  const rows = Object.entries(inputs).map(([name, input]) => row(name, { ...outputs[name], ...input }))
  return `# Settings

Berth reads its settings from the environment, once, when a process starts. A setting that is wrong stops the
process with a message that names it. One that is empty counts as not set, but for these, in which empty has a meaning:
${[...EMPTY_MEANS_NONE].map((name) => `\`${name}\``).join(', ')}.

The secrets ${SECRETS.map((name) => `\`${name}\``).join(', ')} may also come from a file: set the name with
\`_FILE\` at its end to the file's path, for example \`${SECRETS[0]}_FILE=/run/secrets/${SECRETS[0]?.toLowerCase()}\`.

| Setting | Default | Accepts | Meaning |
|---|---|---|---|
${rows.join('\n')}

## Work under way

Each kind of work has bounds, which cannot be set: how much may be under way at a time in one \`web\` process, for one
caller, for one workspace, and in all. A caller is an API key or an agent's own token; where no key is asked for, a client
address (of IPv6, a /64; loopback is not counted). A workspace has a share only, so that one that fills its own leaves
room for the others. What is too much is answered 429 with \`Retry-After\`, \`Error-Code: too_many_at_a_time\` and a message
that says whose bound is reached. The metric \`berth_work_under_way\` has what is under way.

| Work | Caller | Workspace | Process | Why |
|---|---|---|---|---|
${Object.values<Bound>(BOUNDS).map(boundRow).join('\n')}

## Requests a minute

What a plan allows is for each key; all keys of a workspace together have four times as much, so that more keys bring no
more. Redis counts both; without it, or while it is away, each \`web\` process counts for itself. A request that is refused
for its key does not count for the workspace. The \`RateLimit-*\` headers are of what is nearer to its limit.

Requests without a key, and those with a bad one, are counted by client address, in the memory of each process:
\`BERTH_ADDRESS_REQUESTS_PER_MINUTE\`, \`BERTH_ADDRESS_FAILED_LOGINS_PER_MINUTE\`. Who sends too many bad keys gets 429 in place
of 401. Good API keys still work from there, since others may share the address: their signature tells them from bad ones
without the database. Gateway tokens of agents are random, so then only those are looked up that were good before. Loopback
is not counted: it is a developer, or a proxy that is not trusted and brings everybody.

This page is made from \`src/settings.ts\`, \`src/agent-settings.ts\`, \`src/kubernetes-settings.ts\` and \`src/lib/bounds.ts\` by \`npm run docs:settings\`.
`
}

const boundRow = ({ name, caller, workspace, process, reason }: Bound): string =>
  `| ${[name, caller ?? '', workspace ?? '', process, reason].join(' | ')} |`

function row(name: string, setting: Setting): string {
  const cells = [`\`${name}\``, preset(setting), accepts(setting), setting.description ?? '']
  return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
}

function preset({ default: value }: Setting): string {
  if (value === undefined || (Array.isArray(value) && value.length === 0)) return ''
  return `\`${value}\``
}

function accepts({ enum: values, minimum, maximum }: Setting): string {
  if (values) return values.map((value) => `\`${value}\``).join(', ')
  return minimum === undefined ? '' : `${minimum} to ${maximum}`
}

if (import.meta.main) {
  writeFileSync(OUTPUT, settingsPage())
  writeFileSync(STACK, withSettings(readFileSync(STACK, 'utf8')))
}
