/**
 * The official `pinata` SDK, unchanged: each method for files runs once against a real Berth, and methods that Berth
 * does not offer are listed. A new SDK version with a new method makes this file fail.
 */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import sdkPackage from '../../node_modules/pinata/package.json' with { type: 'json' }
import { reportRun } from '../clients/report.ts'
import { openContext } from './context.ts'
import { describeAccount } from './sdk/account.ts'
import { describeAnalytics } from './sdk/analytics.ts'
import { describeFiles } from './sdk/files.ts'
import { describeGateways } from './sdk/gateways.ts'
import { openSdk } from './sdk/open.ts'
import { describeUploads } from './sdk/uploads.ts'

const NOT_OFFERED: [RegExp, string][] = [
  [/^x402\./, 'Berth sells nothing'],
  [/vector/i, 'Berth has no vector index'],
]
/** Methods that send nothing; all except `updateConfig` are private in the SDK's source. */
const LOCAL = /\.(updateConfig|fetchPage|rateLimit|getAnalytics)$/

const berth = await openSdk(await openContext())
describeAccount(berth)
describeUploads(berth)
describeFiles(berth)
describeGateways(berth)
describeAnalytics(berth)

describe('the SDK', () => {
  it('the SDK gets 501 for what Berth does not offer', async () => {
    const { plain: sdk } = berth
    const { id } = await berth.upload('private')
    const calls = [
      () => sdk.files.private.vectorize(id),
      () => sdk.files.private.queryVectors({ groupId: id, query: 'boats' }),
      () => sdk.files.private.deleteVectors(id),
      () => sdk.x402.listPaymentInstructions(),
    ]
    for (const call of calls) await assert.rejects(call, { statusCode: 501 })
  })

  it('every SDK method is called here or known to be missing', async () => {
    const methods = berth.methods().filter((name) => !LOCAL.test(name))
    const isNotOffered = (name: string) => NOT_OFFERED.some(([pattern]) => pattern.test(name))
    assert.deepEqual(
      methods.filter((name) => !berth.called.has(name) && !isNotOffered(name)),
      [],
    )
    for (const [pattern, reason] of NOT_OFFERED)
      assert.ok(
        methods.some((name) => pattern.test(name)),
        `nothing in the SDK matches ${pattern}: ${reason}`,
      )
    const calls = methods.filter((name) => berth.called.has(name)).length
    await reportRun({
      client: 'SDK `pinata` of npm',
      version: sdkPackage.version,
      calls,
      passed: calls,
      leftOut: NOT_OFFERED.map(([, reason]) => reason),
    })
  })
})
