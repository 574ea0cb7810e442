/** agentd: the supervisor of one agent, and the only way to reach it. Started with AGENTD_CONFIG; ends on SIGTERM. */
import { flushCompileCache } from 'node:module'
import { chatService } from './chat.ts'
import { configService } from './config.ts'
import { DiskWatch } from './disk.ts'
import { execService } from './exec.ts'
import { filesService } from './files.ts'
import { Gateway } from './gateway.ts'
import { GatewayClient, rpcService } from './gateway-client.ts'
import { keepLog, takeOverLog } from './kept-log.ts'
import { lifecycleService } from './lifecycle.ts'
import { logService } from './log-service.ts'
import { Log } from './logs.ts'
import { relocateHome } from './moved-home.ts'
import { agentMark } from './openclaw.ts'
import { agentPaths } from './paths.ts'
import { replaceFile } from './plain-file.ts'
import { portService } from './ports.ts'
import { killProcessTree } from './processes.ts'
import type { AgentdConfig } from './protocol.ts'
import { proxyService } from './proxy.ts'
import { RepositoryService } from './repository/repository-service.ts'
import { Scripts } from './scripts.ts'
import { type Agent, AgentdServer, type Service } from './server.ts'
import { skillsService } from './skills.ts'
import { Status, statusService } from './status.ts'
import { TaskWatch, tasksService } from './tasks.ts'
import { terminalService } from './terminals.ts'
import { UsageWatch, usageService } from './usage.ts'
import { makeRoot, workspaceService } from './workspace.ts'

if (!process.env.AGENTD_CONFIG) throw new Error('AGENTD_CONFIG is not set: agentd is started by Berth')
const config: AgentdConfig = JSON.parse(process.env.AGENTD_CONFIG)
const paths = agentPaths(config.home)
const log = new Log()
// agentd's own lines also go to the operator, in the container's log.
log.subscribe((line) => {
  if (line.source === 'agentd') console.log(`${line.timestamp} ${line.level} ${line.message}`)
})
const status = new Status(config)
const onChange = () => status.changed()
const scripts = new Scripts({ paths, log, onChange, env: () => gateway.env })
const disk = new DiskWatch({
  home: config.home,
  limitBytes: config.diskBytes,
  hardLimit: config.hardLimit ?? false,
  log,
  onChange,
  onFull: (reason) => void stopAgent(reason),
})
const gateway = new Gateway({
  config,
  paths,
  log,
  onChange() {
    onChange()
    tasks.connect()
  },
  onReady: (request) => request.scripts !== 'none' && scripts.run(request.scripts),
  beforeRun: () => scripts.stop(),
  refusal: () => disk.refusal(),
})
const tasks = new TaskWatch(gateway, onChange)
const usage = new UsageWatch(disk)
const agent: Agent = { config, paths, gateway, engine: new GatewayClient(gateway), log }
const repository = new RepositoryService(agent, disk)
const services: Service[] = [
  statusService(status, { gateway, scripts, disk, usage, tasks, epoch: () => server.epoch }),
  lifecycleService({ gateway, scripts }),
  workspaceService(agent, repository),
  repository,
  usageService(usage),
  logService(agent),
  execService(agent),
  terminalService(agent),
  filesService(agent),
  rpcService(agent),
  chatService(agent),
  tasksService(agent, tasks),
  configService(agent),
  skillsService(agent),
  proxyService(agent),
  portService(agent),
]
const server = new AgentdServer({ config, log, services })

/** More than the services need: 8 s for the gateway, 5 s for the rest. */
const STOP_MS = 15_000

/**
 * Ends everything that runs for the agent. agentd keeps running, so that the reason can be seen, and space can be
 * freed.
 */
async function stopAgent(reason: string): Promise<void> {
  await Promise.all([gateway.fail(reason), scripts.stop()])
  await killProcessTree({ leader: null, marks: [agentMark(paths)] })
}

let stopping = false
async function stop(): Promise<void> {
  if (stopping) return
  stopping = true
  // Limits the whole shutdown, because somebody waits for agentd to end.
  setTimeout(() => process.exit(1), STOP_MS).unref()
  disk.stop()
  await server.close()
  await Promise.all(services.map((service) => service.stop?.()))
  await killProcessTree({ leader: null, marks: [agentMark(paths)] })
  await keepLog(paths, log)
  process.exit(0)
}
process.on('SIGTERM', stop)
process.on('SIGINT', stop)

// The gateway fails for the same reason; without agentd nobody could see or fix it.
await makeRoot(paths).catch((error) => log.error(`the agent's folders cannot be created: ${error.message}`))
await takeOverLog(paths, log)
// In process mode a killed agentd leaves its children behind.
await killProcessTree({ leader: null, marks: [agentMark(paths)] })
await repository.recover()
await relocateHome(paths, log)
// With NODE_COMPILE_CACHE the next agentd starts without Node's TypeScript compiler, which takes 30 MB.
flushCompileCache()
const port = await server.listen(config.host, config.port)
disk.start()
usage.start()
if (config.readyFile) {
  await replaceFile(config.readyFile, JSON.stringify({ pid: process.pid, port }))
}
log.info(`agentd of ${config.agentId} listens on port ${port}`)
