/**
 * Stands in for the engine in tests that do not use the engine or need one that misbehaves: a real engine takes 10 s
 * and 1 GB, and behaves. Its version selects its behaviour. `test/engine/engine.test.ts` compares it with the real one.
 */
import { createHash } from 'node:crypto'
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ENGINE_VERSION, enginesDir, OLDER_ENGINE_VERSION } from '../../support/engines.ts'

/** Versions of the stand-in by their behaviour. */
export const STAND_IN = {
  /** Ready at once. */
  good: '2026.1.1',
  /** Another version that is ready at once. */
  newer: '2026.1.2',
  /** Exits like OpenClaw with a state that it cannot read. */
  refuses: '2026.1.3',
  /** Runs, but is never ready. */
  slow: '2026.1.4',
  /** Ready three seconds after its start. */
  late: '2026.1.7',
  /** Ready as soon as {@link openGate} was called, before or after its start. */
  gated: '2026.1.8',
  /** Exits at once, each time. */
  dies: '2026.1.5',
  /** Exits at once, with the longest last words, in characters that cannot be stored or shown. */
  babbles: '2026.1.6',
  /** Needs a Node version that does not exist: {@link UNFIT_RANGE}. */
  unfit: '2026.1.9',
  /** Ready at once, and knows no key for any model. */
  modelless: '2026.1.10',
} as const

export const UNFIT_RANGE = '>=99.1.0 <100 || >=101.0.0'

const PROGRAM = `
import { existsSync, readFileSync } from 'node:fs'
import { createHash } from 'node:crypto'
import { createServer } from 'node:http'
const gate = new URL('../../open', import.meta.url)
const started = Date.now()
const { version } = JSON.parse(readFileSync(new URL('package.json', import.meta.url), 'utf8'))
const port = Number(process.argv[process.argv.indexOf('--port') + 1])
if (version === '${STAND_IN.refuses}') {
  console.error(JSON.stringify({ level: 'error', message: 'state database uses schema 18; this build supports 17' }))
  process.exit(78)
}
if (version === '${STAND_IN.dies}') process.exit(1)
if (version === '${STAND_IN.babbles}') {
  const words = 'half of a pair: \\ud83d, NUL: \\0, ' + '\\u0001'.repeat(4000)
  for (let i = 0; i < 20; i++) console.error(JSON.stringify({ level: 'error', message: words }))
  process.exitCode = 78
} else {
const server = createServer((request, response) => {
  const isLate = version === '${STAND_IN.late}' && Date.now() < started + 3000
  const isShut = version === '${STAND_IN.gated}' && !existsSync(gate)
  const isStarting = version === '${STAND_IN.slow}' || isLate || isShut
  response.writeHead(isStarting ? 503 : 200, { 'content-type': 'application/json' })
  response.end(JSON.stringify({ ok: true, status: 'live' }))
}).listen(port, '127.0.0.1')
if (version === '${STAND_IN.modelless}') server.on('upgrade', ({ headers }, socket) => {
  const accept = createHash('sha1').update(headers['sec-websocket-key'] + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11').digest('base64')
  const protocol = 'HTTP/1.1 101 Switching Protocols\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\nSec-WebSocket-Accept: '
  const send = (frame) => {
    const text = JSON.stringify(frame)
    socket.write(String.fromCharCode(0x81, text.length) + text, 'latin1')
  }
  socket.on('error', () => {}).write(protocol + accept + '\\r\\n\\r\\n')
  send({ type: 'event', event: 'connect.challenge' })
  socket.on('data', (data) => {
    // A frame a chunk; each of a client is masked.
    if ((data[0] & 15) !== 1) return socket.destroy()
    const head = (data[1] & 127) === 126 ? 4 : 2
    const mask = data.subarray(head, head + 4)
    const { id } = JSON.parse(Buffer.from(data.subarray(head + 4).map((byte, i) => byte ^ mask[i % 4])))
    send({ type: 'res', id, ok: true, payload: { providers: [] } })
  })
})
}
process.on('SIGTERM', () => process.exit(0))
`

/** Makes the `gated` engines in a folder ready. */
export const openGate = (dir: string): Promise<void> => writeFile(join(dir, STAND_IN.gated, 'open'), '')

/** Installs every version into a folder. */
export async function installStandIns(dir: string): Promise<void> {
  for (const version of Object.values(STAND_IN)) {
    const folder = join(dir, version, 'node_modules/openclaw')
    await mkdir(folder, { recursive: true })
    const engines = version === STAND_IN.unfit ? { node: UNFIT_RANGE } : undefined
    await writeFile(join(folder, 'package.json'), JSON.stringify({ name: 'openclaw', version, engines }))
    await writeFile(join(folder, 'openclaw.mjs'), PROGRAM)
  }
}

/**
 * Installs every version into a folder, with links to the real versions from `ensureEngines`. Resolves to the folder.
 */
export async function installAll(dir: string): Promise<string> {
  await installStandIns(dir)
  for (const version of [ENGINE_VERSION, OLDER_ENGINE_VERSION])
    await symlink(join(enginesDir, version), join(dir, version))
  return dir
}

/**
 * Tags Docker's base image with a second name, for Berths whose agents may run stand-ins. Docker keys engine images by
 * the name of their base, and this name changes with the program.
 */
export async function tagStandInBase(): Promise<string> {
  const { BASE_IMAGE, docker } = await import('../../support/docker.ts')
  const [repo, tag] = ['berth-stand-in', createHash('sha256').update(PROGRAM).digest('hex').slice(0, 12)]
  await docker.getImage(BASE_IMAGE).tag({ repo, tag })
  return `${repo}:${tag}`
}

/** Builds the Docker image of a version, unless it exists. */
export async function buildStandIn(version: string): Promise<void> {
  const [{ docker }, { buildEngineImage }] = await Promise.all([
    import('../../support/docker.ts'),
    import('../../../src/openclaw/image.ts'),
  ])
  const enginesDir = await mkdtemp(join(tmpdir(), 'berth-engines-'))
  try {
    await installStandIns(enginesDir)
    await buildEngineImage(docker, { version, baseImage: await tagStandInBase(), enginesDir })
  } finally {
    await rm(enginesDir, { recursive: true })
  }
}
