/** A real Kubo that uses Berth as its remote pinning service (`ipfs pin remote`). */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { promisify } from 'node:util'
import { type KuboNode, kuboBinary, startKubo } from '../../support/kubo.ts'
import { freePort, until } from '../../support/processes.ts'
import { type Stack, type StackKind, startStack } from '../../support/stack.ts'

const run = promisify(execFile)
const ALL = '--status=queued,pinning,pinned,failed'
/** A peer id without a node behind it, which a pin cannot know. */
const NOBODY = '/p2p/12D3KooWN5wpNZayhHtveWiTBL35x3pe4uyEotTfDjWhNM2Z4GRV'

const skip = kuboBinary ? false : 'BERTH_TEST_KUBO is not set'

for (const kind of ['embedded', 'real'] satisfies StackKind[]) {
  describe(`Kubo and Berth, ${kind}`, { skip }, () => {
    let berth: Stack
    let kubo: KuboNode
    let key: string

    const ipfs = (...args: string[]) => client(kubo)(...args)
    const remote = (command: string, ...args: string[]) =>
      ipfs('pin', 'remote', command, '--service=berth', ...args)
    const list = async (...args: string[]) => (await remote('ls', ...args)).split('\n').filter(Boolean)

    /** Calls `/psa/pins<path>` like a client without a node. */
    async function psa(path: string, body?: object): Promise<any> {
      const answer = await fetch(`${berth.url}/psa/pins${path}`, {
        method: body ? 'POST' : 'GET',
        headers: { authorization: `Bearer ${key}` },
        body: body ? JSON.stringify(body) : null,
      })
      return answer.json()
    }

    before(async () => {
      const listen = `/ip4/127.0.0.1/tcp/${await freePort()}`
      const env = { BERTH_IPFS_LISTEN: listen, BERTH_PINS: 'stallSeconds=20' }
      berth = await startStack({ kind, env })
      kubo = await startKubo()
      key = await berth.createKey()
      await ipfs('pin', 'remote', 'service', 'add', 'berth', `${berth.url}/psa`, key)
    })
    after(async () => {
      await Promise.all([kubo?.stop(), berth?.stop()])
    })

    it(`Kubo with Berth as its pinning service (${kind}) pins the node’s content and waits for it`, async () => {
      const cid = await addFile(kubo)
      const printed = await remote('add', '--name=x', cid)
      assert.match(printed, new RegExp(`CID: +${cid}\nName: +x\nStatus: +pinned`))
      assert.deepEqual(await list('--name=x'), [`${cid}\tpinned\tx`])
      assert.deepEqual(await list('--name=x', ALL), [`${cid}\tpinned\tx`])
      assert.deepEqual(await list('--name=x', '--status=queued,pinning,failed'), [])
    })
    it(`Kubo with Berth as its pinning service (${kind}) gets an address to connect to`, async () => {
      const { results } = await psa('?limit=1')
      const [delegate] = results[0].delegates
      assert.match(delegate, /^\/ip4\/127\.0\.0\.1\/tcp\/\d+\/p2p\/12D3KooW\w+$/)
      assert.match(await ipfs('swarm', 'peers'), new RegExp(delegate.split('/').at(-1)))
    })
    it(`Kubo with Berth as its pinning service (${kind}) pins in the background`, async () => {
      const cid = await addFile(kubo)
      await remote('add', '--name=later', '--background', cid)
      await until('it is pinned', async () => (await list('--name=later')).length === 1)
      assert.deepEqual(await list(`--cid=${cid}`, ALL), [`${cid}\tpinned\tlater`])
    })
    it(`Kubo with Berth as its pinning service (${kind}) pins content from a node that must dial Berth`, async () => {
      const cid = await addFile(kubo)
      await ipfs('swarm', 'disconnect', (await psa('?limit=1')).results[0].delegates[0]).catch(() => {})
      const origins = [`/ip4/127.0.0.1/tcp/${await freePort()}${NOBODY}`]
      const { requestid, delegates } = await psa('', { cid, origins })
      await until(
        'the content is searched for',
        async () => (await psa(`/${requestid}`)).status === 'pinning',
      )
      await ipfs('swarm', 'connect', delegates[0])
      await until('it is pinned', async () => (await psa(`/${requestid}`)).status === 'pinned')
    })
    it(`Kubo with Berth as its pinning service (${kind}) lists pins in pages`, async () => {
      const cid = await addFile(kubo)
      for (let i = 0; i < 23; i++) await psa('', { cid, name: 'many' })
      await until('all are pinned', async () => (await psa('?name=many&status=pinned')).count === 23)
      assert.equal((await list('--name=many')).length, 23)
      assert.match(await ipfs('pin', 'remote', 'service', 'ls', '--stat'), /0\/0\/\d+\/0$/)
    })
    it(`Kubo with Berth as its pinning service (${kind}) removes pins`, async () => {
      await remote('rm', '--name=x')
      assert.deepEqual(await list('--name=x', ALL), [])
      await assert.rejects(remote('rm', '--name=many'), /multiple remote pins/)
      await remote('rm', '--name=many', '--force')
      assert.deepEqual(await list('--name=many', ALL), [])
    })
    it(`Kubo with Berth as its pinning service (${kind}) shows the reason of a failure`, async () => {
      await ipfs('pin', 'remote', 'service', 'add', 'stranger', `${berth.url}/psa`, 'no-key')
      const refused = ipfs('pin', 'remote', 'ls', '--service=stranger')
      await assert.rejects(refused, /reason: "BAD_TOKEN", details: "Invalid, expired or revoked API key"/)
    })
  })
}

describe('Kubo and a Berth that nobody can dial', { skip }, () => {
  it('Kubo with a Berth that nobody can dial pins its content, because Berth dials the node', async () => {
    const kubo = await startKubo()
    const berth = await startStack({ kind: 'embedded' }).catch(async (error) => {
      await kubo.stop()
      throw error
    })
    try {
      const ipfs = client(kubo)
      await ipfs('pin', 'remote', 'service', 'add', 'berth', `${berth.url}/psa`, await berth.createKey())
      const cid = await addFile(kubo)
      assert.match(await ipfs('pin', 'remote', 'add', '--service=berth', cid), /Status: +pinned/)
    } finally {
      await Promise.all([kubo.stop(), berth.stop()])
    }
  })
})

/** Runs `ipfs <args>` on a node; resolves to what it printed. */
function client(kubo: KuboNode) {
  const env = { ...process.env, IPFS_PATH: kubo.repo }
  return async (...args: string[]) =>
    (await run(kuboBinary ?? '', args, { env, timeout: 180_000 })).stdout.trim()
}

/** Adds a file with new content to a node. */
async function addFile(kubo: KuboNode): Promise<string> {
  const file = join(kubo.repo, 'content')
  await writeFile(file, randomBytes(300_000))
  return client(kubo)('add', '-Q', file)
}
