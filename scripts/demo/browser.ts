/** A real browser, if this machine has one. */
import { execFile } from 'node:child_process'
import { access, constants } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'

const NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable', 'chrome']
const PAGE_MS = 30_000

/** The path of this machine's Chromium or Chrome; undefined if there is none. */
export async function findBrowser(): Promise<string | undefined> {
  const folders = (process.env.PATH ?? '').split(delimiter)
  for (const path of folders.flatMap((folder) => NAMES.map((name) => join(folder, name)))) {
    const isThere = await access(path, constants.X_OK).then(
      () => true,
      () => false,
    )
    if (isThere) return path
  }
}

/**
 * Opens a page without a window, runs its scripts, and resolves to its DOM as HTML.
 * @param options.hosts names that lead to 127.0.0.1, because no DNS server of this machine knows them.
 */
export async function openPage(
  browser: string,
  url: string,
  options: { hosts: string[]; profile: string; signal: AbortSignal; screenshot?: string },
): Promise<string> {
  const { hosts, profile, signal, screenshot } = options
  const rules = hosts.map((host) => `MAP ${host} 127.0.0.1`).join(', ')
  const { stdout } = await promisify(execFile)(
    browser,
    [
      '--headless=new',
      // As root, the browser's own sandbox does not start; the page belongs to the demo.
      ...(process.getuid?.() === 0 ? ['--no-sandbox'] : []),
      '--disable-gpu',
      '--no-first-run',
      `--user-data-dir=${profile}`,
      `--host-resolver-rules=${rules}`,
      // The page exists only here, so no proxy can reach it.
      '--no-proxy-server',
      ...(screenshot ? [`--screenshot=${screenshot}`, '--window-size=1000,700'] : []),
      '--dump-dom',
      url,
    ],
    { signal, timeout: PAGE_MS, killSignal: 'SIGKILL', maxBuffer: 10_000_000 },
  )
  return stdout
}
