/** The certificates that the agent's programs trust: those of the system, and the CA of its egress proxy. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { makeFolders } from './folders.ts'
import type { Paths } from './paths.ts'
import { NotPlain, readPlainFile, replaceFile } from './plain-file.ts'

/** Where Debian has its roots, and with it each image of an engine. */
const SYSTEM_ROOTS = '/etc/ssl/certs/ca-certificates.crt'
const MAX_BYTES = 4_194_304

/** Variables with a file that replaces a program's own roots. */
const REPLACING = [
  'SSL_CERT_FILE',
  'REQUESTS_CA_BUNDLE',
  'CURL_CA_BUNDLE',
  'GIT_SSL_CAINFO',
  'PIP_CERT',
  'AWS_CA_BUNDLE',
  'CARGO_HTTP_CAINFO',
]
/** Variables with a file that adds to them. */
const ADDING = ['NODE_EXTRA_CA_CERTS', 'DENO_CERT']

function filesOf({ state }: Paths): { folder: string; added: string; all: string } {
  const folder = join(state, 'berth')
  return { folder, added: join(folder, 'ca.pem'), all: join(folder, 'ca-bundle.pem') }
}

/** git's configuration: the engine takes git's variables from its tools' environment, but not this. */
const gitConfig = (all: string) => [
  ['http.sslCAInfo', all],
  // Otherwise git first asks the proxy without the credential.
  ['http.proxyAuthMethod', 'basic'],
]

/** The variables with which programs trust what {@link writeTrust} has written. */
export function trustEnvironment(paths: Paths): Record<string, string> {
  const { added, all } = filesOf(paths)
  const config = gitConfig(all)
  return {
    ...Object.fromEntries(REPLACING.map((name) => [name, all])),
    ...Object.fromEntries(ADDING.map((name) => [name, added])),
    GIT_CONFIG_COUNT: String(config.length),
    ...Object.fromEntries(
      config.flatMap(([key, value], i) => [
        [`GIT_CONFIG_KEY_${i}`, key],
        [`GIT_CONFIG_VALUE_${i}`, value],
      ]),
    ),
  }
}

/**
 * Writes the files of {@link trustEnvironment}, in the engine's state rather than in /tmp, which agents tidy up. They
 * include the certificates that agentd's own environment names.
 * @param options.roots the system's roots; Node's own if there is no such file.
 */
export async function writeTrust(
  paths: Paths,
  caCertificate: string,
  { own = process.env, roots = SYSTEM_ROOTS }: { own?: NodeJS.ProcessEnv; roots?: string } = {},
): Promise<void> {
  const { folder, added, all } = filesOf(paths)
  const extra = own.NODE_EXTRA_CA_CERTS && (await read(own.NODE_EXTRA_CA_CERTS))
  const system = (await read(own.SSL_CERT_FILE || roots)) ?? (await rootsOfNode())
  const more = extra ? joined(extra, caCertificate) : joined(caCertificate)
  await makeFolders(folder)
  await replaceIfOther(added, more)
  await replaceIfOther(all, joined(system, more))
}

const joined = (...texts: string[]) => texts.map((text) => `${text.trim()}\n`).join('')

const read = (path: string) => readFile(path, 'utf8').catch(() => undefined)

/** Imported only if needed: it takes memory in every agent. */
async function rootsOfNode(): Promise<string> {
  const { rootCertificates } = await import('node:tls')
  return rootCertificates.join('\n')
}

/** An agent whose disk is full starts with the files that it has. */
async function replaceIfOther(path: string, text: string): Promise<void> {
  const current = await readPlainFile(path, MAX_BYTES).catch((error) => {
    if (error instanceof NotPlain) return undefined
    throw error
  })
  if (current !== text) await replaceFile(path, text)
}
