/**
 * Generates the Prisma client, and the columns for manual statements, from prisma/schema.prisma. Run it by hand after a
 * change of the schema, and commit the result. An installation then needs no time for it, and not Prisma's command
 * line, which is larger than all its other packages together.
 */
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import client from '@prisma/client/package.json' with { type: 'json' }
import { columnsModule } from './schema/columns.ts'

// `prisma generate` would download a schema engine that it does not use; naming any executable prevents that.
const { status } = spawnSync('npx', ['--yes', `prisma@${client.version}`, 'generate', '--no-hints'], {
  stdio: 'inherit',
  shell: process.platform === 'win32',
  env: { ...process.env, PRISMA_SCHEMA_ENGINE_BINARY: process.execPath, PRISMA_HIDE_UPDATE_MESSAGE: '1' },
})
if (status !== 0) process.exit(status ?? 1)
writeFileSync(new URL('../src/db/generated/columns.ts', import.meta.url), columnsModule())
