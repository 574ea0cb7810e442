import { chmod } from 'node:fs/promises'
import type { Config } from '../config.ts'
import { AgentDisks } from '../disks/agent-disks.ts'
import { openPool } from '../disks/pool.ts'
import { createDisksServer } from '../disks/server.ts'
import { ConfigError } from '../errors.ts'
import { reserveSetting } from '../lib/disk.ts'
import { bindSocket } from '../lib/net/bind.ts'
import type { Logger } from '../log.ts'
import type { RunningRole } from './running-role.ts'

const MIB = 1_048_576

/**
 * Starts the disk helper, which may mount: root, or with CAP_SYS_ADMIN. When it ends, the disks of agents that run stay.
 * @throws ConfigError
 */
export async function openDisks(config: Config, log: Logger): Promise<RunningRole> {
  const { BERTH_DISKS_SOCKET: socket, BERTH_DISKS_DIR: dir, BERTH_DISKS_DEVICE: device } = config
  const { BERTH_DISKS_MB: megabytes } = config
  if (!socket) throw new ConfigError('BERTH_DISKS_SOCKET: set it to where `worker` reaches the disk helper')
  const imageBytes = megabytes === undefined ? undefined : megabytes * MIB
  const pool = await openPool({ dir, device, imageBytes })
  const disks = await AgentDisks.open(pool, reserveSetting(config))
  const server = createDisksServer(disks, log)
  await bindSocket(server, socket, 'BERTH_DISKS_SOCKET')
  // For the group that this process was started with: the worker's.
  await chmod(socket, 0o660)
  void disks.sweep()
  log.info({ socket, device: device ?? 'image' }, 'the disk helper listens')
  return {
    async stop() {
      await new Promise((resolve) => server.close(resolve))
      pool.release()
    },
  }
}
