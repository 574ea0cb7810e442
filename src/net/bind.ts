import type { AddressInfo, Server } from 'node:net'
import { ConfigError } from '../config.ts'

/** Where a server listens, with the settings that say so. */
export interface Binding {
  host: string
  /** 0 takes a free port. */
  port: number
  settings: { host: string; port: string }
}

const PORT_ERRORS: Record<string, string> = {
  EADDRINUSE: 'is in use',
  EACCES: 'needs privileges that this process does not have',
}

/**
 * Starts to listen, and resolves with the port.
 * @throws ConfigError naming the setting, when the port is taken or the address is not this machine's.
 */
export function bind(server: Server, { host, port, settings }: Binding): Promise<number> {
  return new Promise((resolve, reject) => {
    const refuse = (error: NodeJS.ErrnoException) => {
      const reason = PORT_ERRORS[error.code ?? '']
      if (reason) return reject(new ConfigError(`${settings.port}: ${port} ${reason} on ${host}`))
      reject(new ConfigError(`${settings.host}: cannot listen on ${host}: ${error.message}`))
    }
    server.once('error', refuse)
    server.listen(port, host, () => {
      server.off('error', refuse)
      resolve((server.address() as AddressInfo).port)
    })
  })
}
