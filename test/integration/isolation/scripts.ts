/** Scripts that agents run with `node -e` in isolation tests. */

/** Prints whether a connection succeeds, for each `host:port` in its arguments. */
export const KNOCK = `
  const { connect } = require('node:net')
  const knock = (target) => new Promise((resolve) => {
    const [, host, port] = /^(.*):(\\d+)$/.exec(target)
    const socket = connect({ host, port })
    socket.setTimeout(2000, () => socket.destroy())
    socket.once('connect', () => { resolve('open'); socket.destroy() })
    socket.once('error', () => {})
    socket.once('close', () => resolve('closed'))
  })
  Promise.all(process.argv.slice(1).map(async (target) => [target, await knock(target)]))
    .then((found) => console.log(JSON.stringify(Object.fromEntries(found))))`

/** Prints the status that the proxy in the first argument returns for a CONNECT to each of the other arguments. */
export const TUNNEL = `
  const { request } = require('node:http')
  const [proxy, ...targets] = process.argv.slice(1)
  const ask = (path) => new Promise((resolve) => {
    const { hostname: host, port } = new URL(proxy)
    const sent = request({ host, port, method: 'CONNECT', path, agent: false })
    sent.once('connect', (response, socket) => { resolve(response.statusCode); socket.destroy() })
    sent.once('error', (error) => resolve(error.code))
    sent.end()
  })
  Promise.all(targets.map(async (target) => [target, await ask(target)]))
    .then((found) => console.log(JSON.stringify(Object.fromEntries(found))))`
