/** Credentials for registries, from Docker's own files: `config.json` in DOCKER_CONFIG, or in `~/.docker`. */
import { execFile } from 'node:child_process'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { z } from 'zod'
import { SandboxError } from '../../errors.ts'
import { readIfExists } from '../../lib/files.ts'
import { parseJson } from '../../lib/read.ts'

const HELPER_MS = 30_000
const HUB = 'https://index.docker.io/v1/'

const login = z.object({
  auth: z.string().optional(),
  username: z.string().optional(),
  password: z.string().optional(),
})
const dockerConfig = z.object({
  auths: z.record(z.string(), login).optional(),
  credsStore: z.string().optional(),
  credHelpers: z.record(z.string(), z.string()).optional(),
})

/** `user:password` for a registry; undefined if none is stored. @throws SandboxError if they cannot be read. */
export async function credentialsFor(
  registry: string,
  dir = process.env.DOCKER_CONFIG || join(homedir(), '.docker'),
): Promise<string | undefined> {
  const path = join(dir, 'config.json')
  const text = await readIfExists(path)
  if (text === null) return undefined
  const parsed = dockerConfig.safeParse(parseJson(text))
  if (!parsed.success) throw new SandboxError('internal', `${path} is not a Docker configuration`)
  const { auths = {}, credsStore, credHelpers = {} } = parsed.data
  const key = registry === 'docker.io' ? HUB : registry
  const { auth, username, password } = auths[key] ?? auths[`https://${key}`] ?? {}
  if (auth) return Buffer.from(auth, 'base64').toString('utf8')
  if (username && password) return `${username}:${password}`
  const helper = credHelpers[key] ?? credsStore
  return helper ? askHelper(helper, key) : undefined
}

/** Asks a credential helper of Docker, which fails for a registry that it does not know. */
function askHelper(helper: string, registry: string): Promise<string | undefined> {
  if (!/^[\w.-]+$/.test(helper)) throw new SandboxError('internal', `${helper} is not a credential helper`)
  return new Promise((resolve) => {
    const options = { timeout: HELPER_MS }
    const child = execFile(`docker-credential-${helper}`, ['get'], options, (error, stdout) => {
      const found = z.object({ Username: z.string(), Secret: z.string() }).safeParse(parseJson(stdout))
      resolve(error || !found.success ? undefined : `${found.data.Username}:${found.data.Secret}`)
    })
    child.stdin?.on('error', () => {})
    child.stdin?.end(registry)
  })
}
