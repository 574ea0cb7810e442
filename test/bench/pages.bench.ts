/**
 * How many small responses of an agent's own program get through a domain, and how many bytes, compared with the
 * program's port directly. The agent is a process, because otherwise its port could not be reached from here.
 */

import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { enginesDir } from '../support/engines.ts'
import { startModel } from '../support/model.ts'
import { startStack } from '../support/stack.ts'
import { load } from './support/load.ts'
import { median } from './support/numbers.ts'
import { print, type Result } from './support/report.ts'

export const title = 'Pages of agents'

const REQUESTS = 4000
const CONCURRENCY = 16
const LARGE_REQUESTS = 40
const LARGE_CONCURRENCY = 4
const LARGE = 10_000_000
const ROUNDS = 3
const SUBDOMAIN = 'bench-page'

export async function bench(): Promise<Result[]> {
  await using ending = new AsyncDisposableStack()
  const large = Buffer.alloc(LARGE)
  const small = Buffer.alloc(1024)
  // In process mode, this program counts as the agent's, as if the agent had started it.
  const program = createServer((req, res) => res.end(req.url === '/large' ? large : small))
  program.listen(0, '127.0.0.1')
  await once(program, 'listening')
  ending.defer(() => void program.close())
  const { port } = program.address() as AddressInfo
  const model = await startModel()
  ending.defer(() => model.stop())
  const stack = await startStack({
    kind: 'embedded',
    env: { BERTH_RUNTIME: 'process', BERTH_ENGINES_DIR: enginesDir, ...model.env },
  })
  ending.defer(() => stack.stop())
  const key = await stack.createKey()
  const call = async (method: string, path: string, body?: object) => {
    const headers = { authorization: `Bearer ${key}`, prefer: 'wait=180' }
    const response = await fetch(`${stack.url}${path}`, {
      method,
      headers,
      body: body ? JSON.stringify(body) : null,
    })
    const answer = await response.text()
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${answer}`)
    return JSON.parse(answer)
  }
  const { agent } = await call('POST', '/v0/agents', { name: 'bench' })
  ending.defer(() => call('DELETE', `/v0/agents/${agent.agentId}`))
  if (agent.status !== 'running') throw new Error(`the agent is ${agent.status}: ${agent.statusReason}`)
  await call('POST', `/v0/agents/${agent.agentId}/domains`, { subdomain: SUBDOMAIN, targetPort: port })

  const through = { url: stack.url, headers: { host: `${SUBDOMAIN}.apps.localhost` } }
  const direct = { url: `http://127.0.0.1:${port}` }
  const measure = async (path: string, requests: number, concurrency: number) => {
    const rounds: { berth: number; bare: number }[] = []
    for (let i = -1; i < ROUNDS; i++) {
      const target = { method: 'GET', path: () => path } as const
      const berth = await load({ ...target, ...through }, requests, concurrency)
      const bare = await load({ ...target, ...direct }, requests, concurrency)
      if (i >= 0) rounds.push({ berth: berth.perSecond, bare: bare.perSecond }) // the first is the warm-up
    }
    return rounds
  }
  const perSecond = (n: number) => `${n.toFixed(0)} /s`
  const bytesPerSecond = (n: number) => `${((n * LARGE) / 1e6).toFixed(0)} MB/s`
  return [
    compare('answers of 1 KiB', await measure('/small', REQUESTS, CONCURRENCY), perSecond, 0.25),
    compare(
      'answers of 10 MB',
      await measure('/large', LARGE_REQUESTS, LARGE_CONCURRENCY),
      bytesPerSecond,
      0.6,
    ),
  ]
}

function compare(
  what: string,
  rounds: { berth: number; bare: number }[],
  show: (perSecond: number) => string,
  atLeast: number,
): Result {
  return {
    what,
    berth: show(median(rounds.map(({ berth }) => berth))),
    bare: show(median(rounds.map(({ bare }) => bare))),
    ratio: median(rounds.map(({ berth, bare }) => berth / bare)),
    goal: { atLeast },
  }
}

if (import.meta.main) print(title, await bench())
