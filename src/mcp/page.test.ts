/** `docs/mcp.md` shows the tools, and the set-ups that the dashboard has; `npm run docs:mcp` writes them. */
import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { describe, it } from 'node:test'
import { z } from 'zod'
import { mcpSetUps } from '../../dashboard/src/pages/operate/connect/set-ups.ts'
import type { Tool } from './tool.ts'
import { tools } from './tools.ts'

const PAGE = new URL('../../docs/mcp.md', import.meta.url)
const BERTH = 'https://berth.example.com'

const effect = ({ hints }: Tool) => (hints.readOnly ? 'reads' : hints.destructive ? 'may destroy' : 'adds')
const table = [
  '| tool | what it does | effect |',
  '|---|---|---|',
  ...tools.map((tool) => `| \`${tool.name}\` | ${tool.description} | ${effect(tool)} |`),
].join('\n')

/** The page with the tools and the set-ups of the code. */
function written(page: string): string {
  const blocks = mcpSetUps(BERTH, true).map(({ text }) => `\`\`\`json\n${text}\n\`\`\``)
  return page
    .replace(/```json\n[\s\S]*?```/g, (block) => blocks.shift() ?? block)
    .replace(
      /(<!-- made by `npm run docs:mcp` -->\n)[\s\S]*?(<!-- end -->)/,
      (_, begin, end) => `${begin}\n${table}\n\n${end}`,
    )
}

describe('the page of tools', () => {
  it('docs/mcp.md has the tools and the set-ups', async () => {
    const page = await readFile(PAGE, 'utf8')
    if (process.env.BERTH_TEST_DOCS === 'write') await writeFile(PAGE, written(page))
    else assert.equal(page, written(page))
  })
  it('there are at most 30 tools, whose names every client accepts', () => {
    assert.ok(tools.length <= 30)
    for (const { name } of tools) assert.match(name, /^[a-z]+(_[a-z]+){1,3}$/)
  })
})

const headers = z.strictObject({ Authorization: z.string() }).optional()
const url = z.literal(`${BERTH}/mcp`)
/** The fields that the makers document for a server with a URL. */
const FORMATS: Record<string, z.ZodType> = {
  // https://code.claude.com/docs/en/mcp
  'Claude Code': z.strictObject({
    mcpServers: z.record(z.string(), z.strictObject({ type: z.literal('http'), url, headers })),
  }),
  // https://cursor.com/docs/mcp
  Cursor: z.strictObject({ mcpServers: z.record(z.string(), z.strictObject({ url, headers })) }),
  // https://code.visualstudio.com/docs/agents/reference/mcp-configuration
  'VS Code': z.strictObject({
    inputs: z
      .array(
        z.strictObject({
          ...{ type: z.literal('promptString'), id: z.string(), description: z.string() },
          password: z.boolean(),
        }),
      )
      .optional(),
    servers: z.record(z.string(), z.strictObject({ type: z.literal('http'), url, headers })),
  }),
}
/** How each writes a variable of its configuration. */
const VARIABLES: Record<string, string> = {
  'Claude Code': '{BERTH_KEY}',
  Cursor: '{env:BERTH_KEY}',
  'VS Code': '{input:berth-key}',
}

describe('set-ups', () => {
  for (const withKey of [true, false])
    it(`set-ups have the formats of their programs, ${withKey ? 'with' : 'without'} a key`, () => {
      for (const { name, text } of mcpSetUps(BERTH, withKey)) {
        FORMATS[name]?.parse(JSON.parse(text))
        assert.equal(text.includes(`Bearer $${VARIABLES[name]}`), withKey, name)
      }
    })
})
