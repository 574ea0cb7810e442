/** Writes `docs/data.md`, the data diagram, from `schema.prisma`: `npm run docs:data`. */
import { writeFileSync } from 'node:fs'
import { type Field, type Model, readModels } from './model.ts'

const models = readModels()
const OUTPUT = new URL('../../docs/data.md', import.meta.url)

/** The page, in Markdown. */
export function dataPage(): string {
  return `# Data

The tables of Berth in PostgreSQL and how they belong together. A line is a foreign key; a dotted one is a reference
without a foreign key, since the key would lock one row in every request, or because the row may go first. Of the
columns, the diagram has the keys; all of them, with what they mean, are in [schema.prisma](../prisma/schema.prisma).

\`\`\`mermaid
erDiagram
${models.flatMap(relations).join('\n')}
${models.map(entity).join('\n')}
\`\`\`

| Table | Prisma's name | What a row is |
|---|---|---|
${models.map((model) => `| \`${model.dbName}\` | ${model.name} | ${summary(model)} |`).join('\n')}

## What plans limit

What a request gets beyond a limit, and the files that see to it:

| column of \`plan\` | answer and files |
|---|---|
${limits()}

This page is made from \`prisma/schema.prisma\` by \`npm run docs:data\`.
`
}

/** The relation lines from other entities to this one, which has the references. */
function relations({ dbName, fields }: Model): string[] {
  return fields.flatMap((field) => {
    const [from] = field.relationFromFields ?? []
    if (from) {
      const { isRequired } = fields.find(({ name }) => name === from) as Field
      return [
        `  ${tableOf(field.type)} ${isRequired ? '||' : '|o'}--o{ ${dbName} : "${column(fields, from)}"`,
      ]
    }
    const target = refersTo(field)
    if (!target) return []
    return [
      `  ${tableOf(target)} ${field.isRequired ? '||' : '|o'}..o{ ${dbName} : "${field.dbName ?? field.name}"`,
    ]
  })
}

/** An entity with its key columns. */
function entity({ dbName, fields, primaryKey }: Model): string {
  const foreign = new Set(fields.flatMap((field) => field.relationFromFields ?? []))
  const keys = fields.flatMap((field) => {
    const isPrimary = field.isId || primaryKey?.fields.includes(field.name)
    const marks = [isPrimary && 'PK', (foreign.has(field.name) || refersTo(field)) && 'FK'].filter(Boolean)
    return marks.length > 0 ? [`    ${field.type} ${field.dbName ?? field.name} ${marks.join(', ')}`] : []
  })
  return `  ${dbName} {\n${keys.join('\n')}\n  }`
}

const column = (fields: Field[], name: string) => fields.find((field) => field.name === name)?.dbName ?? name

/** The model that a column refers to without a foreign key. */
const refersTo = ({ documentation }: Field) =>
  /Refers to (\w+), without a foreign key/.exec(documentation ?? '')?.[1]

function tableOf(model: string): string {
  const found = models.find(({ name }) => name === model)
  if (!found) throw new Error(`schema.prisma has no model ${model}`)
  return found.dbName
}

/** The columns of plans, with their comments. */
const limits = () =>
  models
    .find(({ name }) => name === 'Plan')
    ?.fields.filter(({ documentation }) => documentation)
    .map((field) => `| \`${field.dbName ?? field.name}\` | ${field.documentation?.replaceAll('\n', ' ')} |`)
    .join('\n')

/** The first paragraph of its comment. */
const summary = ({ documentation }: Model) =>
  documentation?.split('\n\n')[0]?.replaceAll('\n', ' ').replaceAll('|', '\\|') ?? ''

if (import.meta.main) writeFileSync(OUTPUT, dataPage())
