import assert from 'node:assert/strict'
import { readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { pathToFileURL } from 'node:url'
import { OPERATION_KINDS } from '../src/operations/catalog.ts'
import { useFolder } from '../test/support/folder.ts'
import { loadHandlers } from './registry.ts'
import type { WorkerServices } from './services.ts'

const services = { agents: undefined } as WorkerServices

/**
 * A folder of handlers, one file per kind, which declares the kind that `kindOf` returns; undefined leaves the file
 * out.
 */
async function folderOf(t: TestContext, kindOf: (kind: string) => string | undefined): Promise<URL> {
  const dir = await useFolder('berth-handlers-', t)
  for (const kind of OPERATION_KINDS) {
    const named = kindOf(kind)
    const text = `export const handler = { kind: '${named}', create: () => ({}) }`
    if (named) await writeFile(join(dir, `${kind.replace('.', '-')}.ts`), text)
  }
  return pathToFileURL(`${dir}/`)
}

describe('handler registry', () => {
  it('the handler registry has only storage handlers in a worker without agent queues', async () => {
    const handlers = await loadHandlers(services)
    const kinds = OPERATION_KINDS.filter((kind) => !kind.startsWith('agent.'))
    assert.deepEqual(Object.keys(handlers).sort(), kinds.sort())
  })

  it('the handler registry has one handler of each kind if there are services for agents', async () => {
    const handlers = await loadHandlers({ ...services, agents: {} as NonNullable<WorkerServices['agents']> })
    assert.deepEqual(Object.keys(handlers).sort(), [...OPERATION_KINDS].sort())
  })

  it('the handler registry refuses a kind without a handler', async (t) => {
    const folder = await folderOf(t, (kind) => (kind === 'agent.sync' ? undefined : kind))
    await assert.rejects(loadHandlers(services, folder), /no handler in workers.handlers: agent\.sync/)
  })

  it('the handler registry refuses a file without a handler, and a handler of an unknown kind', async (t) => {
    const folder = await folderOf(t, (kind) => kind)
    await writeFile(new URL('pin-find.ts', folder), '')
    assert.ok((await readdir(folder)).includes('pin-find.ts'))
    await assert.rejects(loadHandlers(services, folder), /unknown kind of operation: pin-find\.ts/)
    const named = await folderOf(t, (kind) => (kind === 'pin.add' ? 'pin.find' : kind))
    await assert.rejects(loadHandlers(services, named), /unknown kind of operation: pin-add\.ts/)
  })

  it('the handler registry refuses a second handler of a kind', async (t) => {
    const folder = await folderOf(t, (kind) => kind)
    await writeFile(new URL('pin.ts', folder), "export const add = { kind: 'pin.add', create: () => ({}) }")
    await assert.rejects(loadHandlers(services, folder), /two handlers in workers.handlers: pin\.add/)
  })

  it('the handler registry refuses a handler in a file named after another resource', async (t) => {
    const folder = await folderOf(t, (kind) => (kind === 'pin.repair' ? 'agent.push' : kind))
    await assert.rejects(
      loadHandlers(services, folder),
      /pin-repair\.ts must not contain the handler of agent\.push/,
    )
  })

  it('the handler registry finds several handlers in one file, and ignores other exports', async (t) => {
    const folder = await folderOf(t, (kind) => (kind.startsWith('pin.') ? undefined : kind))
    const pins = OPERATION_KINDS.filter((kind) => kind.startsWith('pin.'))
    const lines = pins.map((kind, i) => `export const h${i} = { kind: '${kind}', create: () => ({}) }`)
    await writeFile(
      new URL('pin.ts', folder),
      `${lines.join('\n')}\nexport const limit = 3\nexport const none = null`,
    )
    const handlers = await loadHandlers(services, folder)
    assert.deepEqual(
      Object.keys(handlers)
        .filter((kind) => kind.startsWith('pin.'))
        .sort(),
      [...pins].sort(),
    )
  })
})
