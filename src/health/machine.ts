/** Checks only for `berth doctor`, which take a moment or concern the machine: clock, names, permissions. */

import { lookup } from 'node:dns/promises'
import { access, constants, stat } from 'node:fs/promises'
import { isIP } from 'node:net'
import { join } from 'node:path'
import type { Config } from '../config.ts'
import { type Queryable, queryOne } from '../db/pool.ts'
import { hasCode } from '../lib/files.ts'
import { type Finding, reasonOf } from '../lib/readiness.ts'
import { orAborted } from '../lib/signals.ts'

/** Leases and due times use PostgreSQL's clock; keys and links expire by the process's clock. */
const OFF_MS = 2000
const FAR_OFF_MS = 60_000

/** The difference between this machine's clock and PostgreSQL's. */
export async function checkClock(db: Queryable): Promise<Finding> {
  const before = Date.now()
  const row = await queryOne<{ now: number }>(
    db,
    'SELECT extract(epoch FROM clock_timestamp())::float * 1000 AS now',
  )
  const offsetMs = row.now - (before + Date.now()) / 2
  const seconds = (Math.abs(offsetMs) / 1000).toFixed(3)
  const detail = `${seconds} s ${offsetMs < 0 ? 'ahead of' : 'behind'} PostgreSQL's`
  const off = Math.abs(offsetMs)
  const status = off < OFF_MS ? 'ok' : off < FAR_OFF_MS ? 'degraded' : 'down'
  return { status, detail, advice: 'Let both machines take their time from the network: `timedatectl`.' }
}

const LOOKUP_MS = 3000

/** A name below each of Berth's domains, and PUBLIC_URL's: each must resolve. */
export async function checkNames(config: Config): Promise<Finding> {
  const { BERTH_GATEWAY_DOMAIN, BERTH_AGENT_DOMAIN, BERTH_APP_DOMAIN, PUBLIC_URL } = config
  const names = new Set([
    ...(PUBLIC_URL ? [new URL(PUBLIC_URL).hostname] : []),
    `*.${BERTH_GATEWAY_DOMAIN}`,
    BERTH_AGENT_DOMAIN,
    `*.${BERTH_AGENT_DOMAIN}`,
    `*.${BERTH_APP_DOMAIN}`,
  ])
  const asked = await Promise.all(
    [...names].map(async (name) => ({ name, leads: await leadsSomewhere(name) })),
  )
  const missing = asked.flatMap(({ name, leads }) => (leads ? [] : [name]))
  if (missing.length > 0)
    return {
      status: 'degraded',
      detail: `no address: ${missing.join(', ')}`,
      advice: 'Add DNS records that lead to the web process, or to the proxy in front of it.',
    }
  const isLocal = [...names].every((name) => /(^|\.)localhost$/.test(name))
  return { status: 'ok', detail: isLocal ? 'localhost: for this machine only' : [...names].join(', ') }
}

async function leadsSomewhere(name: string): Promise<boolean> {
  // RFC 6761: every name below `localhost` is this machine.
  if (/(^|\.)localhost$/.test(name) || isIP(name.replace(/^\[|\]$/g, ''))) return true
  const found = lookup(name.replace(/^\*/, 'berth-doctor'))
  return orAborted(found, AbortSignal.timeout(LOOKUP_MS)).then(
    () => true,
    () => false,
  )
}

const KEY_FILES = ['jwt.key', 'secrets.key', 'agent-proxy.key', 'host.key']
const OTHERS_MAY_WRITE = 0o022
const OTHERS_MAY_READ = 0o077

/** Checks that only this user may write to the data folder and read the keys in it. */
export async function checkPermissions(dir: string): Promise<Finding> {
  try {
    const { mode } = await stat(dir)
    await access(dir, constants.W_OK)
    if (mode & OTHERS_MAY_WRITE) return tooOpen(dir, mode, `chmod go-w ${dir}`)
    for (const path of KEY_FILES.map((name) => join(dir, name))) {
      const key = await stat(path).catch((error) =>
        hasCode(error, 'ENOENT') ? undefined : Promise.reject(error),
      )
      if (key && key.mode & OTHERS_MAY_READ) return tooOpen(path, key.mode, `chmod 600 ${path}`)
    }
    return { status: 'ok', detail: dir }
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return { status: 'ok', detail: `${dir}: made at the first start` }
    const advice = `Let the user of Berth write to ${dir}.`
    return { status: 'down', detail: reasonOf(error), advice }
  }
}

function tooOpen(path: string, mode: number, command: string): Finding {
  return {
    status: 'down',
    detail: `${path} has mode ${(mode & 0o777).toString(8)}`,
    advice: `Run \`${command}\`.`,
  }
}
