/**
 * `npm run dev`: Berth as `npm start` runs it, on a separate data folder (`.berth-dev`). It restarts when its source
 * changes, and has a workspace `demo` with a few files, groups, a secret and a pin that waits for its content.
 */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify, styleText } from 'node:util'
import { stopWithNpm } from '../bin/npm-parent.mjs'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const WATCHED = ['src', 'workers', 'agentd', 'prisma/migrations']
const POLL_MS = 200
const WORKSPACE = 'demo'
/** The hash of random bytes that were never kept. */
const MISSING_CID = 'bafkreibzrxvj5arylfpej6lxswqbzuaqhnzm5h773od25dpxsu67mrcghe'

const dataDir = process.env.BERTH_DATA_DIR ?? join(ROOT, '.berth-dev')
const port = process.env.PORT ?? '3000'
const url = `http://localhost:${port}`
const env = { ...process.env, BERTH_DATA_DIR: dataDir, PORT: port }

await mkdir(dataDir, { recursive: true, mode: 0o711 })
const watch = [...WATCHED.map((dir) => `--watch-path=${dir}`), '--watch-preserve-output']
const berth = spawn(process.execPath, [...watch, 'src/main.ts', 'start'], {
  cwd: ROOT,
  env,
  stdio: 'inherit',
})
const ended = once(berth, 'exit')
// Berth exits first, then this process. Berth receives a terminal's Ctrl-C twice and treats it as one.
for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(name, () => berth.kill())
stopWithNpm('dev')
process.on('exit', () => berth.kill())

const isUp = await Promise.race([untilReady().then(() => true), ended.then(() => false)])
if (isUp) {
  const key = await demoKey()
  await fill(key)
  const bold = (text: string) => styleText('bold', text)
  console.log(`  ${bold('Development.')} A change of the source starts Berth again.`)
  console.log(`  Workspace ${WORKSPACE}, its key:\n\n  export BERTH_KEY=${key}\n`)
}
const [code] = await ended
process.exit(code ?? 0)

async function untilReady(): Promise<void> {
  const isReady = () =>
    fetch(`${url}/readyz`).then(
      ({ ok }) => ok,
      () => false,
    )
  while (!(await isReady())) await delay(POLL_MS)
}

/** A key of the demo's workspace; both are created at the first start. */
async function demoKey(): Promise<string> {
  const path = join(dataDir, 'demo.key')
  const kept = await readFile(path, 'utf8').catch(() => undefined)
  if (kept) return kept
  const workspaces = JSON.parse(await cli('workspaces', 'list', '--json')) as { name: string }[]
  if (!workspaces.some(({ name }) => name === WORKSPACE))
    await cli('workspaces', 'create', WORKSPACE, '--plan', 'unlimited')
  const key = await cli('keys', 'create', '--workspace', WORKSPACE)
  await writeFile(path, key, { mode: 0o600 })
  return key
}

async function cli(...args: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(process.execPath, [join(ROOT, 'bin/berth.mjs'), ...args], {
    env,
  })
  return stdout.trim()
}

/** Adds the demo's content to the workspace, unless it has some. */
async function fill(key: string): Promise<void> {
  const groups = await call(key, 'GET', '/v3/groups/public')
  if (groups.data.groups.length > 0) return
  const notes = await call(key, 'POST', '/v3/groups/public', { name: 'Field notes', is_public: true })
  await call(key, 'POST', '/v3/groups/public', { name: 'Empty' })
  const day = ['Fog until ten.', 'A heron on the east jetty.', 'Rain; the gauge says 14 mm.']
  for (const [i, text] of day.entries()) {
    const keyvalues = { kind: 'note', day: `${i + 1}` }
    await upload(key, `day-${i + 1}.md`, 'text/markdown', `# Day ${i + 1}\n\n${text}\n`, {
      group: notes.data.id,
      keyvalues,
    })
  }
  const gauge =
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 90 30"><path d="M5 25 35 10 60 18 85 5" fill="none" stroke="teal"/></svg>'
  await upload(key, 'gauge.svg', 'image/svg+xml', gauge, { group: notes.data.id })
  await upload(key, 'readings.json', 'application/json', JSON.stringify({ mm: [0, 2, 14] }), {})
  await upload(key, 'private.txt', 'text/plain', 'Only on the private network.\n', { network: 'private' })
  await call(key, 'POST', '/v3/files/public/pin_by_cid', { cid: MISSING_CID, name: 'on its way' })
  await call(key, 'POST', '/v0/secrets', { name: 'WEATHER_API_KEY', value: 'not-a-real-one' })
}

interface Placing {
  network?: 'public' | 'private'
  group?: string
  keyvalues?: Record<string, string>
}

async function upload(key: string, name: string, type: string, text: string, placing: Placing) {
  const form = new FormData()
  form.set('file', new Blob([text], { type }), name)
  form.set('network', placing.network ?? 'public')
  if (placing.group) form.set('group_id', placing.group)
  if (placing.keyvalues) form.set('keyvalues', JSON.stringify(placing.keyvalues))
  return call(key, 'POST', '/v3/files', form)
}

/** A request to the API with a form, or with JSON. @throws Error for a status other than 2xx. */
async function call(key: string, method: string, path: string, body?: unknown) {
  const response = await fetch(`${url}${path}`, {
    method,
    headers: { authorization: `Bearer ${key}` },
    ...(body !== undefined && { body: body instanceof FormData ? body : JSON.stringify(body) }),
  })
  const text = await response.text()
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`)
  return JSON.parse(text)
}
