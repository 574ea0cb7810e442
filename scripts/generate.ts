/**
 * Generates the Prisma client from prisma/schema.prisma. By hand, after a change of the schema: the result is committed,
 * so that an installation needs neither Prisma's command line, which is larger than the rest of its packages together, nor time for it.
 */
import { spawnSync } from 'node:child_process'
import client from '@prisma/client/package.json' with { type: 'json' }

// `prisma generate` would download a schema engine that it does not use; naming any executable stops that.
const { status } = spawnSync('npx', ['--yes', `prisma@${client.version}`, 'generate', '--no-hints'], {
  stdio: 'inherit',
  shell: process.platform === 'win32',
  env: { ...process.env, PRISMA_SCHEMA_ENGINE_BINARY: process.execPath, PRISMA_HIDE_UPDATE_MESSAGE: '1' },
})
process.exit(status ?? 1)
