/**
 * The guard of an agent's pod: its first container. A policy is enforced a second or more after a pod has its address,
 * also where it was there before, and the agent's own container starts only when the guard has ended well.
 */

/** The exit code of a guard that never found the network shut. */
export const OPEN_NETWORK = 77

/**
 * Node runs this, for GUARD_SECONDS at most, and not at all for 0. It knocks at the API server, which an agent must never reach and every cluster has, until it is
 * refused twice in a row: whatever shuts the network is then in force for this pod.
 */
export const GUARD = `
const { mkdirSync } = require('node:fs')
const { connect } = require('node:net')
const { GUARD_FOLDER, GUARD_SECONDS, KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = process.env
if (GUARD_FOLDER) mkdirSync(GUARD_FOLDER, { recursive: true })
const reaches = () => new Promise((resolve) => {
  const socket = connect({ host, port, timeout: 1000 })
  const end = (reached) => { socket.destroy(); resolve(reached) }
  socket.on('connect', () => end(true))
  for (const event of ['error', 'timeout']) socket.on(event, () => end(false))
})
const guard = async () => {
  const end = Date.now() + 1000 * GUARD_SECONDS
  for (let refused = 0; refused < 2;) {
    refused = (await reaches()) ? 0 : refused + 1
    if (Date.now() > end) process.exit(${OPEN_NETWORK})
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}
if (GUARD_SECONDS > 0) guard()
`
