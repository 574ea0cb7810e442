import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Storage } from '../../../src/storage/port.ts'
import { addCases } from './cases/add.ts'
import { buildCases } from './cases/build.ts'
import { carCases } from './cases/car.ts'
import type { Cases } from './cases/context.ts'
import { gcCases } from './cases/gc.ts'
import { hollowCases } from './cases/hollow.ts'
import { pathCases } from './cases/paths.ts'
import { pinCases } from './cases/pin.ts'
import { readCases } from './cases/read.ts'
import { unsupportedCases } from './cases/unsupported.ts'
import { untrustedDagCases } from './cases/untrusted.ts'
import { startProvider } from './node-process.ts'

/** A driver under test. */
export interface Subject {
  storage: Storage
  close(): Promise<void>
}

/** Adding and reading content. */
export const contentCases = [addCases, readCases, pathCases, carCases, hollowCases]
/** Cases of pins and GC. They run on a separate store, because GC takes longer the larger the store is. */
export const keepingCases = [buildCases, untrustedDagCases, pinCases, unsupportedCases, gcCases]

/** The cases that every driver of the storage port must pass, or some of them. */
export function storageContract(
  name: string,
  open: () => Promise<Subject>,
  {
    skip = false,
    groups = [...contentCases, ...keepingCases],
  }: { skip?: string | false; groups?: ((cases: Cases) => void)[] } = {},
): void {
  describe(`storage contract: ${name}`, { skip }, () => {
    const { signal } = new AbortController()
    let subject: Subject
    let storage: Storage
    let provider: Awaited<ReturnType<typeof startProvider>>

    before(async () => {
      provider = await startProvider()
      subject = await open()
      storage = subject.storage
    })
    after(async () => {
      await subject?.close()
      await provider?.stop()
    })

    const cases: Cases = { storage: () => storage, provider: () => provider }
    for (const group of groups) group(cases)

    test('info identifies the node and its addresses', async () => {
      const info = await storage.info({ signal })
      assert.equal(info.driver, storage.driver)
      for (const address of info.addresses) assert.match(address, /\/p2p\/[^/]+$/)
    })
  })
}
