#!/usr/bin/env node
/** Speaks to Berth in the name of the agent that it runs in. Prints JSON; ends with 1 when it was refused. */
import dns from 'node:dns'
import http from 'node:http'
import https from 'node:https'

const { AGENTS_API_URL, AGENT_ID, OPENCLAW_GATEWAY_TOKEN } = process.env
const ANSWER_MS = 60_000

const COMMANDS = {
  whoami: () => ask('GET', '/platform/whoami'),
  status: () => ask('GET', '/status'),
  skills: () => ask('GET', '/skills'),
  attach: (...skillCids) => ask('POST', '/skills', { skillCids }),
  detach: (skillId) => ask('DELETE', `/skills/${name(skillId)}`),
  updates: () => ask('GET', '/skills/updates'),
  update: (skillId, version) => ask('POST', `/skills/${name(skillId)}/update`, version ? { version } : {}),
  secrets: () => ask('GET', '/secrets'),
  snapshots: () => ask('GET', '/snapshots'),
  save: () => ask('POST', '/snapshots/sync', {}),
  routes: () => ask('GET', '/port-forwarding'),
  domains: () => ask('GET', '/domains'),
  get: (path = '') => ask('GET', path.startsWith('/') ? path : `/${path}`),
}

async function ask(method, path, body) {
  const { status, text } = await send(new URL(`${AGENTS_API_URL}/v0/agents/${AGENT_ID}${path}`), method, body)
  if (status < 200 || status > 299) throw new Error(`${status} ${text}`)
  return text
}

function send(url, method, body) {
  const { promise, resolve, reject } = Promise.withResolvers()
  const { request } = url.protocol === 'https:' ? https : http
  const headers = { authorization: `Bearer ${OPENCLAW_GATEWAY_TOKEN}`, 'content-type': 'application/json' }
  const sent = request(url, { method, headers, lookup, signal: AbortSignal.timeout(ANSWER_MS) })
  sent.once('error', reject).once('response', (response) => {
    response.toArray().then((chunks) => {
      resolve({ status: response.statusCode, text: Buffer.concat(chunks).toString('utf8') })
    }, reject)
  })
  sent.end(body && JSON.stringify(body))
  return promise
}

/** Names below `localhost` are this machine (RFC 6761), whether or not the system's resolver knows. */
function lookup(host, options, done) {
  dns.lookup(/(^|\.)localhost$/.test(host) ? 'localhost' : host, options, done)
}

function name(value) {
  if (!value) throw new Error('which one? The list has its id')
  return encodeURIComponent(value)
}

const [command = '', ...rest] = process.argv.slice(2)
try {
  for (const needed of ['AGENTS_API_URL', 'AGENT_ID', 'OPENCLAW_GATEWAY_TOKEN'])
    if (!process.env[needed]) throw new Error(`${needed} is not set: this runs in an agent only`)
  if (!Object.hasOwn(COMMANDS, command)) throw new Error(`commands: ${Object.keys(COMMANDS).join(', ')}`)
  console.log(await COMMANDS[command](...rest))
} catch (error) {
  console.error(error.message)
  process.exitCode = 1
}
