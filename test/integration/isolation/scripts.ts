/** Scripts that agents run in tests of their walls, with `node -e`. */

/** Prints, for each `host:port` of its arguments, whether a connection is made. */
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

/** Prints, for each target of its arguments but the first, the status with which the proxy there answers a CONNECT. */
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
