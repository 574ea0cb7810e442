/** A real browser without a window, driven over the DevTools protocol. */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { access, constants, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { createInterface } from 'node:readline'
import { WebSocket } from 'ws'
import { until } from './processes.ts'

const NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable', 'chrome']
/** It has no windows to draw, which take much processor time. */
const SHELL = 'chromium-headless-shell'
const START_MS = 60_000
const SHOWN_MS = 60_000

/**
 * The path of this machine's Chromium or Chrome; undefined if there is none. @param isWhole for what Chromium's headless
 * shell lacks: videos and the PDF viewer.
 */
export async function findBrowser({ isWhole = false } = {}): Promise<string | undefined> {
  const folders = (process.env.PATH ?? '').split(delimiter)
  const names = isWhole ? NAMES : [SHELL, ...NAMES]
  for (const path of names.flatMap((name) => folders.map((folder) => join(folder, name)))) {
    const isThere = await access(path, constants.X_OK).then(
      () => true,
      () => false,
    )
    if (isThere) return path
  }
}

export class Browser {
  readonly #process: ChildProcess
  readonly #profile: string
  readonly #socket: WebSocket
  readonly #waiting = new Map<number, (answer: { result?: any; error?: unknown }) => void>()
  #lastId = 0

  private constructor(process: ChildProcess, profile: string, socket: WebSocket) {
    this.#process = process
    this.#profile = profile
    this.#socket = socket
    socket.on('message', (data) => {
      const { id, ...answer } = JSON.parse(String(data))
      this.#waiting.get(id)?.(answer)
      this.#waiting.delete(id)
    })
  }

  /**
   * Starts a browser with an empty page. In it, names below `localhost` lead to this machine.
   * @throws AssertionError if there is no Chromium or Chrome.
   */
  static async start(): Promise<Browser> {
    const path = await findBrowser()
    assert.ok(path, 'there is no Chromium or Chrome here: apt-get install chromium')
    const profile = await mkdtemp(join(tmpdir(), 'berth-browser-'))
    const args = ['--headless=new', '--disable-gpu', '--disable-dev-shm-usage', '--no-first-run']
    // The browser's own sandbox does not start as root; the pages belong to the test.
    if (process.getuid?.() === 0) args.push('--no-sandbox')
    args.push('--no-proxy-server', `--user-data-dir=${profile}`, '--remote-debugging-port=0', 'about:blank')
    // A group of its own: the program may be a script, which does not pass signals on.
    const child = spawn(path, args, { stdio: ['ignore', 'ignore', 'pipe'], detached: true })
    let address: string | undefined
    createInterface(child.stderr).on('line', (line) => {
      address ??= /^DevTools listening on (ws:\S+)$/.exec(line)?.[1]
    })
    await until('the browser is up', () => address !== undefined, START_MS)
    const { host } = new URL(address ?? '')
    const targets = (await (await fetch(`http://${host}/json`)).json()) as {
      type: string
      webSocketDebuggerUrl: string
    }[]
    const page = targets.find(({ type }) => type === 'page')
    const socket = new WebSocket(page?.webSocketDebuggerUrl ?? '')
    await once(socket, 'open')
    return new Browser(child, profile, socket)
  }

  open(url: string): Promise<unknown> {
    return this.#call('Page.navigate', { url })
  }

  /** The value of an expression in the page. */
  async evaluate(expression: string): Promise<any> {
    const { result, exceptionDetails } = await this.#call('Runtime.evaluate', {
      expression,
      returnByValue: true,
      awaitPromise: true,
    })
    assert.equal(exceptionDetails, undefined)
    return result.value
  }

  /** Resolves when the page shows a text. */
  async shows(text: string | RegExp): Promise<void> {
    let shown = ''
    const pattern = typeof text === 'string' ? new RegExp(RegExp.escape(text)) : text
    try {
      await until(
        `the page shows ${text}`,
        async () => {
          shown = String(await this.evaluate('document.body.innerText'))
          return pattern.test(shown)
        },
        SHOWN_MS,
      )
    } catch (error) {
      throw new Error(`the page shows no ${text}, but:\n${shown}`, { cause: error })
    }
  }

  /** Clicks the first button whose label begins with a text. */
  click(label: string): Promise<unknown> {
    return this.evaluate(
      `[...document.querySelectorAll('button')].find((button) => button.innerText.trim().startsWith(${JSON.stringify(label)})).click()`,
    )
  }

  /** Types a text into the focused element. */
  type(text: string): Promise<unknown> {
    return this.#call('Input.insertText', { text })
  }

  async press(key: string, code: number): Promise<void> {
    const event = { key, code: key, windowsVirtualKeyCode: code, text: key === 'Enter' ? '\r' : '' }
    await this.#call('Input.dispatchKeyEvent', { type: 'keyDown', ...event })
    await this.#call('Input.dispatchKeyEvent', { type: 'keyUp', ...event })
  }

  async screenshot(path: string): Promise<void> {
    const { data } = await this.#call('Page.captureScreenshot')
    await writeFile(path, Buffer.from(data, 'base64'))
  }

  async close(): Promise<void> {
    this.#socket.terminate()
    const gone = once(this.#process, 'close')
    process.kill(-(this.#process.pid as number), 'SIGKILL')
    await gone
    await rm(this.#profile, { recursive: true, force: true, maxRetries: 5 })
  }

  async #call(method: string, params = {}): Promise<any> {
    const id = ++this.#lastId
    const answered = new Promise<{ result?: any; error?: unknown }>((resolve) => {
      this.#waiting.set(id, resolve)
    })
    this.#socket.send(JSON.stringify({ id, method, params }))
    const { result, error } = await answered
    assert.equal(error, undefined, `${method}: ${JSON.stringify(error)}`)
    return result
  }
}
