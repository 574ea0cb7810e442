/** Writes `docs/settings.md` from the settings' own rules and descriptions: `npm run docs:settings`. */
import { writeFileSync } from 'node:fs'
import { z } from 'zod'
import { SECRETS, settings } from '../src/config.ts'

interface Setting {
  description?: string
  default?: unknown
  enum?: unknown[]
  minimum?: number
  maximum?: number
}

const OUTPUT = new URL('../docs/settings.md', import.meta.url)

/** The page, in Markdown. */
export function settingsPage(): string {
  const rules = (io: 'input' | 'output') =>
    z.toJSONSchema(settings, { io, unrepresentable: 'any' }).properties as Record<string, Setting>
  // What may be set is the input; a default is at the input only where it is not transformed.
  const [inputs, outputs] = [rules('input'), rules('output')]
  const rows = Object.entries(inputs).map(([name, input]) => row(name, { ...outputs[name], ...input }))
  return `# Settings

Berth reads its settings from the environment, once, when a process starts. A setting that is wrong stops the
process with a message that names it. One without a default counts as not set when it is empty.

The secrets ${SECRETS.map((name) => `\`${name}\``).join(', ')} may also come from a file: set the name with
\`_FILE\` at its end to the file's path, for example \`${SECRETS[0]}_FILE=/run/secrets/${SECRETS[0]?.toLowerCase()}\`.

| Setting | Default | Accepts | Meaning |
|---|---|---|---|
${rows.join('\n')}

This page is made from \`src/config.ts\` by \`npm run docs:settings\`.
`
}

function row(name: string, setting: Setting): string {
  const cells = [`\`${name}\``, preset(name, setting), accepts(setting), setting.description ?? '']
  return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
}

function preset(name: string, { default: value }: Setting): string {
  if (value === undefined || (Array.isArray(value) && value.length === 0)) return ''
  // Durations are set in seconds, and are milliseconds in the code.
  return `\`${name.endsWith('_SECONDS') ? Number(value) / 1000 : value}\``
}

function accepts({ enum: values, minimum, maximum }: Setting): string {
  if (values) return values.map((value) => `\`${value}\``).join(', ')
  return minimum === undefined ? '' : `${minimum} to ${maximum}`
}

if (import.meta.main) writeFileSync(OUTPUT, settingsPage())
