/** Bounds of agentd's terminals: how many, how much is kept, who waits for whom, and what ends them. */
import assert from 'node:assert/strict'
import { statSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { terminalService } from '../../../agentd/terminals.ts'
import { type ServedAgentd, serveAgentd } from '../../support/agentd-services.ts'
import { passAtOnce } from '../../support/clock.ts'
import { until, untilStill } from '../../support/processes.ts'
import { standInEngine, TestAgentd, TOKEN } from './agentd.ts'
import { TerminalViewer } from './terminal-viewer.ts'

let agentd: ServedAgentd
const env = { PATH: process.env.PATH ?? '' }
before(async () => {
  agentd = await serveAgentd([terminalService], { env })
})
after(() => agentd.close())

const open = (query: Record<string, string | number> = {}) => TerminalViewer.open(agentd, query)
const exits = async (viewer: TerminalViewer) => {
  viewer.type('exit\r')
  await viewer.event('exit')
}
const isGone = (pid: string) =>
  readFile(`/proc/${pid}/stat`, 'utf8').then(
    (stat) => / Z /.test(stat),
    () => true,
  )
/** The pid of a shell. */
async function pidOf(viewer: TerminalViewer): Promise<string> {
  viewer.type('echo pid=$$.\r')
  await viewer.sees(/pid=\d+\./)
  return /pid=(\d+)\./.exec(viewer.shown)?.[1] ?? ''
}
/** The size of a file in the folder of the shells. */
const sizeOf = (name: string) =>
  statSync(join(agentd.agent.paths.root, name), { throwIfNoEntry: false })?.size ?? 0

test('eight terminals open; a further one is refused, or replaces one without a viewer', async () => {
  const viewers = await Promise.all(Array.from({ length: 8 }, () => open()))
  await assert.rejects(open(), /^Error: 429 busy: 8 terminals are already open$/)
  const [left, ...others] = viewers as [TerminalViewer, ...TerminalViewer[]]
  const { terminal } = await left.event('ready')
  const pid = await pidOf(left)
  left.socket.destroy()
  const next = await until('a place is free', () => open().catch(() => undefined))
  await until('its shell has ended', () => isGone(pid))
  await assert.rejects(open({ terminal }), /404 not_found: there is no such terminal/)
  for (const viewer of [next, ...others]) await exits(viewer)
})

test('a program waits for a viewer that does not read, and Ctrl-C still reaches it', async () => {
  const viewer = await open()
  viewer.type(
    `perl -e 'while (1) { print "x" x 999, "\\n"; open F, ">written"; print F "x" x ++$n; close F }'\r`,
  )
  await viewer.sees('xxx')
  viewer.socket.pause()
  const lines = await untilStill('what it has written', () => sizeOf('written'))
  assert.ok(lines < 20_000, `${lines} KB were written`)
  viewer.type('\x03')
  viewer.socket.resume()
  await viewer.sees(/\^C.*[$#] $/s)
  await exits(viewer)
})

test('a viewer waits for a program that does not read, and no input is lost', async () => {
  const viewer = await open()
  viewer.type(`stty raw -echo; echo wait''ing; sleep 1; head -c 1000000 | cksum; stty sane\r`)
  await viewer.sees('waiting')
  viewer.type('x'.repeat(1_000_000))
  // `cksum` of a million times x.
  await viewer.sees('1459561774 1000000')
  await exits(viewer)
})

test('the last 256 KiB of the output are kept, and sent to the next viewer', async () => {
  const first = await open()
  const { terminal } = await first.event('ready')
  first.type('seq 100000; echo do""ne\r')
  // With the prompt, after which nothing is written.
  await first.sees(/done\s.*[$#] $/s)
  first.socket.destroy()
  const second = await open({ terminal })
  await second.sees('done')
  const { from } = await second.event('ready')
  assert.ok(second.bytes <= 262_144 && second.bytes > 200_000, `${second.bytes}`)
  assert.ok(from >= first.bytes - 262_144)
  await exits(second)
})

test('a terminal that nobody is connected to is kept for ten minutes', async (t) => {
  const viewer = await open()
  const pid = await pidOf(viewer)
  const { terminal } = await viewer.event('ready')
  passAtOnce(t, 600_000)
  viewer.socket.destroy()
  await until('its shell has ended', () => isGone(pid))
  await assert.rejects(open({ terminal }), /404 not_found/)
})

test('a silent terminal ends after twelve hours, and says why', async (t) => {
  passAtOnce(t, 43_200_000)
  const viewer = await open()
  const { code, reason } = await viewer.event('exit')
  assert.deepEqual([code, reason], [129, 'nothing was typed or shown for 720 minutes'])
})

test('a viewer that breaks the protocol is disconnected', async () => {
  const viewer = await open()
  const closed = new Promise((resolve) => viewer.socket.once('close', resolve))
  viewer.socket.write(Buffer.from('GET / HTTP/1.1\r\n\r\n'))
  await closed
})

test('a sandbox without perl refuses terminals and says so', async () => {
  const bare = await serveAgentd([terminalService], { env: { PATH: '/nowhere' } })
  try {
    const refused = /^Error: 501 unsupported: this sandbox cannot open terminals: perl is missing$/
    await assert.rejects(TerminalViewer.open(bare), refused)
  } finally {
    await bare.close()
  }
})

test('shells end with agentd, even if it is killed', async () => {
  const engineDir = await standInEngine()
  const real = await TestAgentd.start({ engineDir })
  try {
    for (const signal of ['SIGKILL', 'SIGTERM'] as const) {
      const port = Number(new URL(real.url('/')).port)
      const viewer = await TerminalViewer.open({ port, headers: { authorization: `Bearer ${TOKEN}` } })
      const pid = await pidOf(viewer)
      await real.kill(signal)
      await until('the shell has ended', () => isGone(pid))
      await real.boot()
    }
  } finally {
    await real.close()
  }
})
