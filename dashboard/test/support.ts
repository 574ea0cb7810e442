/** Shared by the dashboard tests: a real browser, signed in to a separate workspace in a real Berth. */
import assert from 'node:assert/strict'
import { mkdir, readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { after } from 'node:test'
import { type Browser, chromium, type Locator, type Page } from 'playwright-core'
import { type Context, openContext, type Workspace } from '../../test/contract/context.ts'
import { findBrowser } from '../../test/support/browser.ts'
import { until } from '../../test/support/processes.ts'
import type { Stack } from '../../test/support/stack.ts'

/** A name that runs a script if it is rendered as markup. */
export const HOSTILE = `<img src=x onerror="window.ran=1"><script>window.ran=1</script>`
/** How long a page may take on a busy machine. */
export const HOST_MS = 60_000
/** The folder for screenshots of the pages. */
const shots = process.env.DASHBOARD_SHOTS
const AXE = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** All rules in light, and the rules that depend on colours also in dark. */
const RULES = { light: undefined, dark: ['color-contrast', 'link-in-text-block'] }
/** How long a change may take an engine. */
const INSIST_MS = 60_000

const SIZES = [
  { width: 1440, height: 900 },
  { width: 390, height: 844 },
]

interface Axe {
  axe: {
    run(options: {
      runOnly?: string[]
      resultTypes: string[]
    }): Promise<{ violations: { id: string; nodes: { html: string }[] }[] }>
  }
}

export interface Dashboard extends Context {
  own: Workspace
  browser: Browser
  page: Page
  /** Errors and policy violations in the browser; empty if there were none. */
  complaints: string[]
  /** Every URL that any page has requested. */
  asked: string[]
  newPage(): Promise<Page>
  /** A link that signs a user in to the workspace; the owner by default. */
  link(user?: string): Promise<string>
  /** Signs the page in, and waits for the overview. @param user a member of the workspace; its owner unless told. */
  signIn(page?: Page, user?: string): Promise<void>
  /**
   * Waits until the events of the workspace's creation are so old that a newly opened page does not refetch data for
   * them. It does so for recent events, which may be newer than the data that it has read.
   */
  untilAged(): Promise<void>
  /** Checks that the page has no violation of accessibility, wide or narrow, in either colour scheme, and takes pictures. */
  look(name: string): Promise<void>
}

/**
 * Opens a browser for the tests of a file, and closes it after them.
 * @param options.berth a Berth other than the test run's.
 * @param options.isShared uses the workspace of the agent that test files share, instead of a new one.
 * @param options.isWhole uses a browser with videos and a PDF viewer.
 */
export async function openDashboard({
  berth,
  isShared = false,
  isWhole = false,
}: {
  berth?: Stack
  isShared?: boolean
  isWhole?: boolean
} = {}): Promise<Dashboard> {
  if (shots) await mkdir(shots, { recursive: true })
  const context = await openContext(berth)
  const { url, env } = context
  const own = isShared ? await context.sharedWorkspace() : await context.workspace()
  const gateways = `.${env.BERTH_GATEWAY_DOMAIN ?? 'gateway.localhost'}`
  /** True for URLs of this Berth: the page's own origin, and previews from gateways. */
  const isOwn = ({ protocol, origin, port, hostname }: URL) =>
    // The last two belong to the browser's PDF viewer.
    ['blob:', 'chrome:', 'chrome-extension:'].includes(protocol) ||
    origin === new URL(url).origin ||
    (port === new URL(url).port && hostname.endsWith(gateways))
  const executablePath = await findBrowser({ isWhole })
  assert.ok(executablePath, 'there is no Chromium or Chrome here: apt-get install chromium')
  // A page lives for seconds: to optimize its code takes a ninth of the tests' processor time, and gains nothing.
  const args = ['--js-flags=--no-opt', '--no-proxy-server']
  if (process.getuid?.() === 0) args.push('--no-sandbox')
  const browser = await chromium.launch({ executablePath, args })
  after(() => browser.close())
  const complaints: string[] = []
  const asked: string[] = []

  async function newPage(): Promise<Page> {
    const context = await browser.newContext({
      viewport: { width: 1280, height: 800 },
      reducedMotion: 'reduce',
    })
    const page = await context.newPage()
    page.setDefaultTimeout(HOST_MS)
    page.on('framenavigated', (frame) => asked.push(frame.url()))
    page.on('request', (request) => {
      asked.push(request.url())
      // Content that a page created itself, such as a preview, causes no request to a host.
      if (!isOwn(new URL(request.url()))) complaints.push(`asked ${request.url()}`)
    })
    page.on('pageerror', (error) => complaints.push(error.message))
    page.on('console', (line) => {
      if (/Content.Security.Policy/i.test(line.text())) complaints.push(line.text())
    })
    return page
  }
  const page = await newPage()
  const link = async (user?: string) => `${url}/login#token=${await own.loginToken(user)}`

  async function signIn(on = page, user?: string): Promise<void> {
    await on.goto(await link(user))
    await on.getByRole('button', { name: 'Sign in' }).click()
    await on.getByRole('heading', { name: 'Overview' }).waitFor()
  }

  const untilAged = async () => {
    // Five seconds, and one more because HTTP dates are rounded down to seconds.
    const young = `SELECT FROM event WHERE workspace_id = $1 AND created_at > now() - interval '6 s'
      UNION ALL SELECT FROM event_pending WHERE workspace_id = $1`
    await until('its events are old', async () => (await context.sql(young, [own.id])).length === 0)
  }

  async function look(name: string): Promise<void> {
    if (!(await page.evaluate(() => 'axe' in globalThis))) await page.evaluate(AXE)
    const before = page.viewportSize()
    for (const size of SIZES) {
      await page.setViewportSize(size)
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme })
        const found = await page.evaluate(async (rules) => {
          const { axe } = globalThis as unknown as Axe
          const { violations } = await axe.run({
            ...(rules && { runOnly: rules }),
            resultTypes: ['violations'],
          })
          return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`)
        }, RULES[colorScheme])
        assert.deepEqual(found, [], `${name}, ${colorScheme}, ${size.width} px`)
        if (shots) await page.screenshot({ path: join(shots, `${name}-${size.width}-${colorScheme}.png`) })
      }
    }
    await page.emulateMedia({ colorScheme: 'light' })
    if (before) await page.setViewportSize(before)
  }
  return { ...context, own, browser, page, complaints, asked, newPage, link, signIn, untilAged, look }
}

/** The URLs that contain a token, a secret or a key. */
export const withSecrets = (asked: string[]) =>
  asked.filter((address) => /eyJ[\w-]+\.eyJ|whsec_|[?&](token|key|secret)=/.test(address))

/**
 * Makes the page record whether it shows a text in a place, as the text of an element or as its label. A text that is
 * shown for seconds may disappear before a busy machine checks.
 * @returns a function that waits until the text was shown.
 */
export async function noteShown(place: Locator, text: string): Promise<() => Promise<unknown>> {
  const noted = await place.evaluateHandle((place, text) => {
    const noted = { isShown: false }
    const has = (one: Element) => one.textContent === text || one.ariaLabel === text
    const changes = { subtree: true, childList: true, characterData: true, attributeFilter: ['aria-label'] }
    new MutationObserver(() => {
      const all = [place, ...place.querySelectorAll('*')]
      noted.isShown ||= all.some((one) => has(one) && one.checkVisibility())
    }).observe(place, changes)
    return noted
  }, text)
  return () => place.page().waitForFunction(({ isShown }) => isShown, noted)
}

/** Actions that the tests perform on menus and dialogs of a page. */
export function actionsOn(page: Page) {
  const dialog = page.getByRole('dialog')
  const inDialog = (name: string) => dialog.getByRole('button', { name, exact: true })
  return {
    dialog,
    inDialog,
    button: (name: string) => page.getByRole('button', { name, exact: true }),
    row: (text: string) => page.getByRole('listitem').filter({ hasText: text }),
    /** Waits until the dialog is closed. */
    isGone: () => dialog.waitFor({ state: 'detached' }),
    ranNothing: async () => assert.equal(await page.evaluate('window.ran'), undefined),
    /** Chooses an item from the menu of a thing. */
    async choose(thing: string, item: string): Promise<void> {
      await page.getByRole('button', { name: `More about ${thing}`, exact: true }).click()
      await page.getByRole('menuitem', { name: item, exact: true }).click()
    },
    /**
     * Requests a change from an engine, and retries on 503: a busy engine counts as unreachable for a moment, and then
     * nothing has changed. @param answerMs after this long without a response, asks again.
     */
    insist: (ask: () => Promise<void>, answerMs = INSIST_MS) =>
      until(
        'the engine takes it',
        async () => {
          const [answer] = await Promise.all([
            page.waitForResponse((response) => response.request().method() !== 'GET', { timeout: answerMs }),
            ask(),
          ])
          return answer.status() !== 503
        },
        2 * INSIST_MS,
      ),
    async confirmByName(name: string, word: string): Promise<void> {
      assert.ok(await inDialog(word).isDisabled())
      await dialog.getByLabel(`Type “${name}”`).fill(name)
      await inDialog(word).click()
    },
  }
}

/**
 * Makes a page see a Berth whose operator has set no model.
 * @param found the local servers to report instead of the real ones.
 * @returns a function that ends this.
 */
export async function withoutModel(page: Page, found?: object[]): Promise<() => Promise<void>> {
  const models = '**/v0/agents/models'
  await page.route(models, async (route) => {
    const { data } = await (await route.fetch()).json()
    await route.fulfill({ json: { data: { ...data, hasDefault: false, ...(found && { local: found }) } } })
  })
  return () => page.unrouteAll({ behavior: 'ignoreErrors' })
}

/** Drags a file from the machine onto the middle of an element, and drops it there. */
export async function dropFile(page: Page, place: Locator, path: string): Promise<void> {
  const client = await page.context().newCDPSession(page)
  const box = await place.boundingBox()
  assert.ok(box)
  const at = { x: box.x + box.width / 2, y: box.y + box.height / 2 }
  const data = { items: [], files: [path], dragOperationsMask: 1 }
  for (const type of ['dragEnter', 'dragOver', 'drop'] as const)
    await client.send('Input.dispatchDragEvent', { type, ...at, data })
  await client.detach()
}

/** The colours of a line of pixels across an element, as `r,g,b`. */
export async function colorsAcross(place: Locator): Promise<string[]> {
  const picture = (await place.screenshot()).toString('base64')
  // A blank page does not have the policy of the tested page.
  const blank = await place.page().context().newPage()
  const colors = await blank.evaluate(async (picture) => {
    const bytes = Uint8Array.from(atob(picture), (char) => char.charCodeAt(0))
    const bitmap = await createImageBitmap(new Blob([bytes], { type: 'image/png' }))
    const canvas = new OffscreenCanvas(bitmap.width, bitmap.height)
    const paint = canvas.getContext('2d')
    paint?.drawImage(bitmap, 0, 0)
    const { data } = paint?.getImageData(0, Math.floor(bitmap.height / 2), bitmap.width, 1) ?? { data: [] }
    return Array.from({ length: bitmap.width }, (_, x) => [...data.slice(4 * x, 4 * x + 3)].join())
  }, picture)
  await blank.close()
  return colors
}

/** @returns a function that uploads files as a form, like any other client. */
export const sender =
  (url: string, { key }: { key: string }) =>
  async (files: { name: string; bytes: Uint8Array | string }[], fields: Record<string, string>) => {
    const form = new FormData()
    for (const [name, value] of Object.entries(fields)) form.set(name, value)
    for (const { name, bytes } of files) form.append('file', new Blob([bytes as BlobPart]), name)
    const headers = { authorization: `Bearer ${key}` }
    const answer = await fetch(`${url}/v3/files`, { method: 'POST', body: form, headers })
    const body = (await answer.json()) as { data: { id: string; cid: string } }
    assert.equal(answer.status, 200, JSON.stringify(body))
    return body.data
  }
