/**
 * The entry point of every process: `node src/main.ts <role>`. The roles are those in the Procfile, and `disks`;
 * `start` prepares the database (`prepare`) and runs the Procfile's roles. `compile` is a part of its first start, and
 * `compile image` a part of building the image.
 */
import { loadConfig } from './config.ts'
import { DatabaseAwayError } from './db/database-errors.ts'
import { ConfigError } from './errors.ts'
import { releaseMemoryAtRest } from './lib/process/memory-at-rest.ts'
import { createLogger } from './log.ts'
import { onStopSignals, type RunningRole } from './roles/running-role.ts'

/** `EX_CONFIG` of sysexits(3): a restart does not help, so a supervisor must not attempt one. */
const EXIT_CONFIG = 78
/** How often a stopping role reports what it waits for. */
const WAITING_MS = 250

const role = process.argv[2] ?? ''

try {
  const config = loadConfig()
  // `prepare` responds on standard output, so it logs nothing there.
  const log = createLogger(role, role === 'prepare' ? 'silent' : config.LOG_LEVEL)
  process.on('unhandledRejection', (error) => {
    log.fatal({ err: error }, 'unhandled rejection')
    process.exit(1)
  })
  // Loaded on demand: no role loads the modules of another.
  switch (role) {
    case 'start':
      await (await import('./roles/start.ts')).start(config)
      break
    case 'compile':
      await (await import('./roles/compile.ts')).compile(process.argv[3] === 'image' ? 'image' : 'start')
      process.exit(0)
      break
    case 'prepare':
      console.log(JSON.stringify(await (await import('./roles/prepare.ts')).prepare(config, log)))
      break
    case 'web':
      runUntilToldToStop(await (await import('./roles/web.ts')).openWeb(config, log))
      break
    case 'worker':
      runUntilToldToStop(await (await import('./roles/worker.ts')).openWorker(config, log))
      break
    case 'agent-proxy':
      runUntilToldToStop(await (await import('./roles/agent-proxy.ts')).openAgentProxy(config, log))
      break
    case 'disks':
      runUntilToldToStop(await (await import('./roles/disks.ts')).openDisks(config, log))
      break
    default:
      throw new ConfigError(
        `usage: main.ts start | web | worker | agent-proxy | disks (not ${role || 'nothing'})`,
      )
  }
} catch (error) {
  if (!(error instanceof ConfigError || error instanceof DatabaseAwayError)) throw error
  console.error(error.message)
  process.exit(error instanceof ConfigError ? EXIT_CONFIG : 1)
}

/** Stops on a signal, or if the supervisor that started this process has died. */
function runUntilToldToStop(running: RunningRole): void {
  releaseMemoryAtRest()
  let stopping = false
  const begin = () => {
    if (stopping) return
    stopping = true
    tellWaits(running)
    void running.stop().finally(() => process.exit(0))
  }
  const supervised = process.send !== undefined
  onStopSignals({ begin, hurry: () => running.hurry?.() }, { passedOn: !supervised })
  if (!supervised) return
  process.once('disconnect', begin)
  process.send?.({ type: 'ready', url: running.url })
}

/** Tells the supervisor what this process waits for, whenever that changes. */
function tellWaits(running: RunningRole): void {
  let told = ''
  setInterval(() => {
    const what = running.waitsFor?.() ?? []
    if (String(what) === told || !process.connected) return
    told = String(what)
    process.send?.({ type: 'waiting', what })
  }, WAITING_MS).unref()
}
