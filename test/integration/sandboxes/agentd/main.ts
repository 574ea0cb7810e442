/**
 * Stands in for agentd in driver tests: it listens where it is told, reports that, and runs the shell commands it is
 * sent (`POST /`; the response is their output). It needs nothing that the engine needs.
 */
import { spawn } from 'node:child_process'
import { existsSync, renameSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'

const config = JSON.parse(process.env.AGENTD_CONFIG ?? '{}')
// A test requests this through the agent's home.
if (existsSync(join(config.home, 'ends-at-once'))) process.exit(9)
process.on('SIGTERM', () => {
  const isIgnored = existsSync(join(config.home, 'ignores-sigterm'))
  setTimeout(() => process.exit(0), isIgnored ? 9000 : 0)
})

// A client that waits long between two commands must not meet a connection that is being closed.
const server = createServer({ keepAliveTimeout: 120_000 }, (request, response) => {
  let command = ''
  request.on('data', (chunk) => {
    command += chunk
  })
  request.on('end', () => {
    const child = spawn('/bin/sh', ['-c', command || 'true'], { stdio: ['ignore', 'pipe', 'pipe'] })
    let output = ''
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk))
    child.once('error', (error) => response.end(JSON.stringify({ code: 127, output: error.message })))
    child.once('exit', (code) => setTimeout(() => response.end(JSON.stringify({ code, output })), 20))
  })
})

server.listen(config.port, config.host, () => {
  if (!config.readyFile) return
  const { port } = server.address() as AddressInfo
  writeFileSync(`${config.readyFile}.new`, JSON.stringify({ pid: process.pid, port }))
  renameSync(`${config.readyFile}.new`, config.readyFile)
})
