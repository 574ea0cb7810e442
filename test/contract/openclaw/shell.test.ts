/** `berth agents shell`, in a terminal. */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { after, describe, it } from 'node:test'
import { BUNDLE, runBundle } from '../../support/command-line.ts'
import { useFolder } from '../../support/folder.ts'
import { until } from '../../support/processes.ts'
import { openContext } from '../context.ts'
import { sharedStandIn } from './context.ts'

const context = await openContext()
const { agentId } = await sharedStandIn(context)
const dir = await useFolder('berth-shell-')
const env = { BERTH_URL: context.url, BERTH_KEY: String(context.shared.key), XDG_CONFIG_HOME: dir }

/** Runs commands in a terminal of 101 × 33. */
function inTerminal(script: string) {
  const program: ChildProcess = spawn('script', ['-qec', `stty rows 33 cols 101; ${script}`, '/dev/null'], {
    env: { ...env, NODE: process.execPath, BERTH: BUNDLE, PATH: process.env.PATH, TERM: 'xterm' },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  after(() => program.kill('SIGKILL'))
  let shown = ''
  program.stdout?.on('data', (chunk) => {
    shown += chunk
  })
  return {
    code: new Promise<number | null>((resolve) => program.once('exit', resolve)),
    shown: () => shown,
    type: (text: string) => program.stdin?.write(text),
    async sees(text: string | RegExp) {
      const isShown = () => (typeof text === 'string' ? shown.includes(text) : text.test(shown))
      await until(`${text} is shown`, isShown).catch((error) => {
        throw new Error(`${error.message} in ${JSON.stringify(shown)}`)
      })
    },
  }
}
const SHELL = `"$NODE" "$BERTH" agents shell ${agentId}`

describe('berth agents shell', () => {
  it('a shell has the size of the terminal, all keys, and passes on its exit code', async () => {
    const shell = inTerminal(`${SHELL}; echo "code $?"; stty -a`)
    await shell.sees(/[$#] $/)
    shell.type('stty size; sleep 300\r')
    await shell.sees('33 101')
    shell.type('\x03')
    await shell.sees(/\^C.*[$#] $/s)
    shell.type('exit 7\r')
    await shell.sees('code 7')
    // The user's terminal is unchanged.
    await shell.sees(/[^-]icanon.*[^-]echo /s)
    await shell.code
  })
  it('the terminal is restored if berth is killed', async () => {
    const shell = inTerminal(`sh -c 'echo pid=$$; exec ${SHELL}'; echo "code $?"; stty -a`)
    await shell.sees(/[$#] $/)
    process.kill(Number(/pid=(\d+)/.exec(shell.shown())?.[1]), 'SIGTERM')
    await shell.sees('code 143')
    await shell.sees(/[^-]icanon.*[^-]echo /s)
  })
  it('without a terminal, berth agents shell says what to do', async () => {
    const { code, stderr } = await runBundle(['agents', 'shell', agentId], { env })
    assert.equal(code, 2)
    assert.match(stderr, /this is not a terminal\n {2}run a command instead: berth agents exec/)
  })
  it('an agent that does not exist has exit code 5', async () => {
    const shell = inTerminal('"$NODE" "$BERTH" agents shell x0000000')
    await shell.sees('There is no such agent')
    assert.equal(await shell.code, 5)
  })
})
