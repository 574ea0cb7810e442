/** Where to find a Berth and its key: the environment, or profiles in the user's config folder. */
import { chmodSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { trimSlashes } from '../../typescript/src/client.ts'
import { AdvisedError, EXIT } from './errors.ts'

export interface Target {
  url: string
  key: string
}
export interface Profiles {
  current?: string | undefined
  profiles: Record<string, Target>
}

/** The address of `npm start`. */
const LOCAL = 'http://localhost:3000'

export function profilesPath(env: NodeJS.ProcessEnv = process.env): string {
  const fallback = process.platform === 'win32' ? env.APPDATA : undefined
  const config = env.XDG_CONFIG_HOME || fallback || join(homedir(), '.config')
  return join(config, 'berth', 'profiles.json')
}

export function readProfiles(path = profilesPath()): Profiles {
  try {
    return JSON.parse(readFileSync(path, 'utf8'))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return { profiles: {} }
    throw new AdvisedError(
      `${path}: ${(error as Error).message}`,
      'fix the file, or remove it and sign in again',
    )
  }
}

/** Writes the file whole, readable by its user only. */
export function writeProfiles(profiles: Profiles, path = profilesPath()): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  const part = `${path}.${process.pid}`
  writeFileSync(part, `${JSON.stringify(profiles, null, 2)}\n`, { mode: 0o600 })
  chmodSync(part, 0o600)
  renameSync(part, path)
}

/**
 * The Berth that a command calls. `--profile` wins, then `BERTH_URL` and `BERTH_KEY`, then `BERTH_PROFILE`, then the
 * current profile. A profile's key is only sent to the profile's URL.
 * @throws AdvisedError if there is none.
 */
export function chooseTarget(
  profile: string | undefined,
  env: NodeJS.ProcessEnv = process.env,
  read: () => Profiles = readProfiles,
): Target {
  const { BERTH_URL, BERTH_KEY, BERTH_PROFILE } = env
  if (!profile && BERTH_KEY) return { url: trim(BERTH_URL || LOCAL), key: BERTH_KEY }
  const { current, profiles } = read()
  if (!profile && BERTH_URL) {
    const url = trim(BERTH_URL)
    const known = Object.values(profiles).find((one) => one.url === url)
    if (known) return known
    throw new AdvisedError(`there is no key for ${url}`, `berth login ${url}, or set BERTH_KEY`, EXIT.signIn)
  }
  const name = profile ?? (BERTH_PROFILE || current)
  const chosen = name === undefined ? undefined : profiles[name]
  if (chosen) return chosen
  if (name !== undefined)
    throw new AdvisedError(`there is no profile ${name}`, 'berth profiles ls lists them', EXIT.signIn)
  throw new AdvisedError(
    'you are not signed in to a Berth',
    'berth login <url>, or set BERTH_URL and BERTH_KEY',
    EXIT.signIn,
  )
}

/** A URL without slashes at its end, as requests and profiles use it. @throws AdvisedError if it is not http(s). */
export function trim(url: string): string {
  const text = /^https?:\/\//.test(url)
    ? url
    : `${/^(localhost|127\.|\[::1)/.test(url) ? 'http' : 'https'}://${url}`
  if (!URL.canParse(text))
    throw new AdvisedError(`${url} is not a URL`, 'write it like https://berth.example.org', EXIT.usage)
  return trimSlashes(text)
}
