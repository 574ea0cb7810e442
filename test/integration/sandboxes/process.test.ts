import { chmod, mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLogger } from '../../../src/log.ts'
import { openProcessRuntime } from '../../../src/sandboxes/process.ts'
import { containersContract } from './contract.ts'
import { VERSIONS } from './subject.ts'

const log = createLogger('test', 'silent')
const agentdDir = join(import.meta.dirname, 'agentd')

containersContract('process', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'berth-agents-'))
  const enginesDir = join(dir, 'engines')
  for (const version of VERSIONS)
    await mkdir(join(enginesDir, version, 'node_modules/openclaw'), { recursive: true })
  await chmod(dir, 0o711)
  const options = { enginesDir, agentdDir, log, acceptsNoWall: true }
  const open = (name: string) => openProcessRuntime({ ...options, dataDir: join(dir, name) })
  const all = [await open('one'), await open('two'), await open('one')] as const
  const [runtime, stranger, colleague] = all
  return {
    runtime,
    stranger,
    colleague,
    async close() {
      await Promise.all(all.map((one) => one.close()))
      // The watch of a driver that is closing may still be checking its locks.
      await rm(dir, { recursive: true, maxRetries: 10 })
    },
  }
})
