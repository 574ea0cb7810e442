/** A package registry on loopback with a small stand-in for the engine, for the machine's real npm. */
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'

export const VERSION = '2026.1.7'
/** An optional package of the engine, like its native code. */
export const NATIVE = 'native-part'

export interface Registry {
  url: string
  /** Engine tarballs that were fetched. */
  readonly downloads: number
  /** Responses with engine tarballs wait for this. */
  hold(until: Promise<unknown>): void
  /** Removes the tarball of the native package. */
  loseNative(): void
  stop(): Promise<void>
}

const ENGINE_FILES = {
  'openclaw.mjs': 'console.log("engine")',
  'dist/entry.js': '',
  'dist/entry.js.map': '',
  'dist/entry.d.ts': '',
  'dist/worker/worker.mjs': '',
  'dist/hooks/HOOK.md': '',
  'docs/index.md': '',
  'skills/mail/SKILL.md': '',
  'README.md': '',
}

interface Manifest {
  name: string
  version: string
  optionalDependencies?: Record<string, string>
}

export async function startRegistry(): Promise<Registry> {
  const optionalDependencies = { [NATIVE]: '1.0.0' }
  const packages = new Map([
    ['openclaw', await pack({ name: 'openclaw', version: VERSION, optionalDependencies }, ENGINE_FILES)],
    [NATIVE, await pack({ name: NATIVE, version: '1.0.0' }, { 'index.js': '' })],
  ])
  let downloads = 0
  let held: Promise<unknown> = Promise.resolve()
  const server = createServer(async (request, response) => {
    const [, name = '', tarball] = (request.url ?? '').split('/')
    const found = packages.get(name)
    if (!found) return response.writeHead(404).end('{}')
    if (tarball) {
      if (name === 'openclaw') {
        downloads += 1
        await held
      }
      return found.tarball ? response.end(found.tarball) : response.writeHead(503).end()
    }
    const { version } = found.manifest
    const dist = { tarball: `${url}/${name}/it.tgz` }
    const versions = { [version]: { ...found.manifest, dist } }
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ name, 'dist-tags': { latest: version }, versions }))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    url,
    get downloads() {
      return downloads
    },
    hold(until) {
      held = until
    },
    loseNative() {
      const native = packages.get(NATIVE)
      if (native) packages.set(NATIVE, { ...native, tarball: undefined })
    },
    async stop() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

async function pack(manifest: Manifest, files: Record<string, string>) {
  const dir = await mkdtemp(join(tmpdir(), 'berth-package-'))
  try {
    for (const [path, text] of Object.entries({ ...files, 'package.json': JSON.stringify(manifest) })) {
      await mkdir(dirname(join(dir, 'package', path)), { recursive: true })
      await writeFile(join(dir, 'package', path), text)
    }
    await promisify(execFile)('tar', ['-czf', join(dir, 'it.tgz'), '-C', dir, 'package'])
    return { manifest, tarball: (await readFile(join(dir, 'it.tgz'))) as Buffer | undefined }
  } finally {
    await rm(dir, { recursive: true, force: true })
  }
}
