/** Generates the Prisma client. Runs after `npm install` (the `prepare` script). */
import { spawnSync } from 'node:child_process'

// `prisma generate` would download a schema engine that it does not use; naming any executable stops that.
const { status } = spawnSync('prisma', ['generate', '--no-hints'], {
  stdio: ['ignore', 'ignore', 'inherit'],
  shell: process.platform === 'win32',
  env: { ...process.env, PRISMA_SCHEMA_ENGINE_BINARY: process.execPath, PRISMA_HIDE_UPDATE_MESSAGE: '1' },
})
process.exit(status ?? 1)
