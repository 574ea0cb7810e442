import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'
import client from '@prisma/client/package.json' with { type: 'json' }
import { columnsModule } from '../../scripts/schema/columns.ts'

test('the generated Prisma client matches the schema and the installed version', async () => {
  const generated = await readFile(new URL('generated/internal/class.ts', import.meta.url), 'utf8')
  const schema = await readFile(new URL('../../prisma/schema.prisma', import.meta.url), 'utf8')
  const advice = 'npm run generate'
  assert.ok(generated.includes(`"inlineSchema": ${JSON.stringify(schema)}`), advice)
  assert.ok(generated.includes(`"clientVersion": ${JSON.stringify(client.version)}`), advice)
})

test('the generated columns match the schema', async () => {
  const generated = await readFile(new URL('generated/columns.ts', import.meta.url), 'utf8')
  assert.equal(generated, columnsModule(), 'npm run generate')
})
