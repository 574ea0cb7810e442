/**
 * The guard is the first container of an agent's pod. The cluster enforces a policy only a second or more after a pod
 * gets its address, even if the policy existed before. The agent's own container starts only after the guard has
 * succeeded.
 */

/** The exit code of a guard that never found the network closed. */
export const OPEN_NETWORK = 77

/**
 * Node runs this for at most GUARD_SECONDS, and not at all for 0. It opens two connections at once to the API server,
 * which every cluster has and an agent must never reach, until both are refused GUARD_ROUNDS times in a row. Then it
 * prints `shut`: the policy is in force for this pod, provided that the API server is up.
 */
export const GUARD = `
const { mkdirSync } = require('node:fs')
const { connect } = require('node:net')
const { GUARD_FOLDER, GUARD_SECONDS, GUARD_ROUNDS = 2 } = process.env
const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = process.env
if (GUARD_FOLDER) mkdirSync(GUARD_FOLDER, { recursive: true })
const reaches = () => new Promise((resolve) => {
  const socket = connect({ host, port, timeout: 1000 })
  const end = (reached) => { socket.destroy(); resolve(reached) }
  socket.on('connect', () => end(true))
  for (const event of ['error', 'timeout']) socket.on(event, () => end(false))
})
const guard = async () => {
  const end = Date.now() + 1000 * GUARD_SECONDS
  for (let refused = 0; ; await new Promise((resolve) => setTimeout(resolve, 100))) {
    const reached = await Promise.all([reaches(), reaches()])
    refused = reached.includes(true) ? 0 : refused + 1
    if (refused >= GUARD_ROUNDS) return console.log('shut')
    if (Date.now() > end) process.exit(${OPEN_NETWORK})
  }
}
if (GUARD_SECONDS > 0) guard()
`
