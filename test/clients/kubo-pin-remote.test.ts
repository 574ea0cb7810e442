/** `ipfs pin remote` of another Kubo, with Berth as its pinning service. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { promisify } from 'node:util'
import { type KuboNode, kuboBinary, startKubo } from '../support/kubo.ts'
import { until } from '../support/processes.ts'
import { type Stack, startStack } from '../support/stack.ts'
import { Calls, reportRun } from './report.ts'

const COMMAND_MS = 120_000
const ALL = '--status=queued,pinning,pinned,failed'
const execute = promisify(execFile)
const calls = new Calls()

describe('ipfs pin remote', { skip: kuboBinary ? false : 'BERTH_TEST_KUBO is not set' }, () => {
  let stack: Stack
  let kubo: KuboNode

  before(async () => {
    stack = await startStack({ database: 'of the run' })
    kubo = await startKubo()
  })
  after(async () => {
    await Promise.all([kubo?.stop(), stack?.stop()])
  })

  async function ipfs(...args: string[]): Promise<string> {
    const env = { ...process.env, IPFS_PATH: kubo.repo }
    return (await execute(kuboBinary ?? '', args, { env, timeout: COMMAND_MS })).stdout.trim()
  }
  async function addFile(): Promise<string> {
    const file = join(kubo.repo, 'content')
    await writeFile(file, randomBytes(300_000))
    return ipfs('add', '-Q', file)
  }
  const service = (...args: string[]) => calls.make(() => ipfs('pin', 'remote', 'service', ...args))
  const remote = (command: string, ...args: string[]) =>
    calls.make(() => ipfs('pin', 'remote', command, '--service=berth', ...args))

  test('ipfs pin remote accepts Berth as a service, and lists it', async () => {
    await service('add', 'berth', `${stack.url}/psa`, await stack.createKey())
    assert.match(await service('ls'), /^berth /)
    assert.match(await service('ls', '--stat'), /0\/0\/0\/0$/)
  })
  test('ipfs pin remote pins what the node has, and lists it by name, CID and status', async () => {
    const cid = await addFile()
    assert.match(await remote('add', '--name=x', cid), /Status: +pinned/)
    for (const filter of ['--name=x', `--cid=${cid}`, ALL])
      assert.equal(await remote('ls', filter), `${cid}\tpinned\tx`)
    assert.equal(await remote('ls', '--status=failed'), '')
  })
  test('ipfs pin remote pins in the background', async () => {
    const cid = await addFile()
    await remote('add', '--name=later', '--background', cid)
    await until('it is pinned', async () =>
      (await ipfs('pin', 'remote', 'ls', '--service=berth', '--name=later')).includes(cid),
    )
  })
  test('ipfs pin remote removes one pin, and several with --force', async () => {
    await remote('rm', '--name=x')
    assert.equal(await remote('ls', '--name=x', ALL), '')
    const cid = await addFile()
    for (const name of ['many', 'many']) await remote('add', `--name=${name}`, cid)
    const several = ipfs('pin', 'remote', 'rm', '--service=berth', '--name=many')
    await calls.make(() => assert.rejects(several, /multiple remote pins/))
    await remote('rm', '--name=many', '--force')
    assert.equal(await remote('ls', '--name=many', ALL), '')
  })
  test('ipfs pin remote shows why it is refused, and removes the service', async () => {
    await service('add', 'stranger', `${stack.url}/psa`, 'no-key')
    const refused = ipfs('pin', 'remote', 'ls', '--service=stranger')
    await calls.make(() => assert.rejects(refused, /Invalid, expired or revoked API key/))
    await service('rm', 'stranger')
  })
  test('docs/clients.md shows the run of ipfs pin remote', async () => {
    const version = await ipfs('version', '--number')
    const { calls: made, passed } = calls
    await reportRun({ client: '`ipfs pin remote` of Kubo', version, calls: made, passed })
  })
})
