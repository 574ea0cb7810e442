/**
 * Writes `docs/settings.md` from the settings' own rules and descriptions, and the table of limits; and the names of
 * settings into docker-compose.yml: `npm run docs:settings`.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { z } from 'zod'
import { EMPTY_MEANS_NONE, REPLACED } from '../src/config.ts'
import { BOUNDS, type Bound } from '../src/lib/bounds.ts'
import { SECRETS, settings } from '../src/settings.ts'
import { withSettings } from './stack-settings.ts'

interface Setting {
  description?: string
  default?: unknown
  enum?: unknown[]
  minimum?: number
  maximum?: number
  properties?: Record<string, Setting>
  additionalProperties?: unknown
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

Berth reads its settings from the environment once, when a process starts. An invalid setting stops the process with a message that names it. An empty setting counts as not set, except for ${[...EMPTY_MEANS_NONE].map((name) => `\`${name}\``).join(', ')}, where empty has a meaning.

You can store the secrets ${SECRETS.map((name) => `\`${name}\``).join(', ')} in files instead. Append \`_FILE\` to the name and set it to the file's path, for example \`${SECRETS[0]}_FILE=/run/secrets/${SECRETS[0]?.toLowerCase()}\`.

Some settings have several parts: \`BERTH_PINS=stallSeconds=60,active=100\`. Parts that you leave out keep their defaults.

| Setting | Default | Accepts | Meaning |
|---|---|---|---|
${rows.join('\n')}

## Work in progress

Each kind of work has fixed bounds: how much may be in progress at a time in one \`web\` process, for one caller, for one workspace, and in total. A caller is an API key or an agent's token, or a client address if no key is needed (for IPv6, a /64; loopback is not counted). A workspace has only a share, so that one that uses all of its share leaves room for the others. Requests beyond a bound get 429 with \`Retry-After\`, \`Error-Code: too_many_at_a_time\` and a message that says whose bound was reached. The metric \`berth_work_under_way\` counts the work in progress.

| Work | Caller | Workspace | Process | Why |
|---|---|---|---|---|
${Object.values<Bound>(BOUNDS).map(boundRow).join('\n')}

## Requests per minute

A plan's limit applies to each key. All keys of a workspace together have four times as much, so more keys do not give more. Redis counts both; without Redis, each \`web\` process counts for itself. A request that exceeds its key's limit does not count for the workspace. The \`RateLimit-*\` headers describe the limit that is nearer.

Each \`web\` process counts requests without a key, and those with an invalid key, by client address, in memory (\`BERTH_ADDRESS_LIMITS\`). An address that sends too many invalid keys gets 429 instead of 401. Valid API keys still work from that address, because others may share it: their signature shows without the database that they are valid. Gateway tokens of agents are random, so Berth then looks up only those that were valid before. Loopback is not counted: it is a developer, or an untrusted proxy through which everybody comes.

## Former settings

Berth refuses to start with one of these, and names the replacement. Two settings changed: \`BERTH_ENGINE_VERSIONS\` begins with the version of new agents, and \`BERTH_SNAPSHOT_KEEP=50\` is \`BERTH_SNAPSHOT_KEEP=newest=50\`.

| Former setting | Replacement |
|---|---|
${Object.entries(REPLACED).map(formerRow).join('\n')}

\`npm run docs:settings\` generates this page from \`src/settings.ts\`, \`src/agent-settings.ts\`, \`src/kubernetes-settings.ts\`, \`src/config.ts\` and \`src/lib/bounds.ts\`.
`
}

const formerRow = ([name, replacement]: [string, string]): string =>
  `| \`${name}\` | ${replacement && `\`${replacement}${replacement.endsWith('=') ? '…' : ''}\``} |`

const boundRow = ({ name, caller, workspace, process, reason }: Bound): string =>
  `| ${[name, caller ?? '', workspace ?? '', process, reason].join(' | ')} |`

function row(name: string, setting: Setting): string {
  const parts = setting.additionalProperties === false ? Object.entries(setting.properties ?? {}) : []
  const described = parts.flatMap(([part, { description }]) =>
    description ? `\`${part}\`: ${description}.` : [],
  )
  const cells = [
    `\`${name}\``,
    preset(parts.length > 0 ? { default: parts.flatMap(presetOf) } : setting),
    [accepts(setting), ...parts.map(([part, rule]) => accepts(rule) && `\`${part}\` ${accepts(rule)}`)],
    [setting.description, ...described],
  ]
  return `| ${cells.map((cell) => [cell].flat().filter(Boolean).join('<br>').replaceAll('|', '\\|')).join(' | ')} |`
}

const presetOf = ([part, { default: value }]: [string, Setting]): string[] =>
  value === undefined || typeof value === 'object' ? [] : [`${part}=${value}`]

function preset({ default: value }: Setting): string {
  if (value === undefined || String(value) === '') return ''
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
