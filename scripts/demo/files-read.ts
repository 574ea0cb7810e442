/** The last acts of `npm run demo:files`: reading everything back, and deleting it. */
import { setTimeout as delay } from 'node:timers/promises'
import { refused } from './gateway.ts'
import { expectSame, type Scene, sizeOf } from './scene.ts'
import { bytes, count } from './screen.ts'

/** Files that are read at the same time. */
const LANES = 6
const LINK_SECONDS = 3

export async function readBack(scene: Scene): Promise<void> {
  scene.screen.section('Read')
  await throughGateway(scene)
  await swap(scene)
  await privateLink(scene)
}

async function throughGateway({ screen, sdk, kept, comparison, gateway, signal }: Scene): Promise<void> {
  const served = kept.filter(({ network }) => network === 'public')
  const files = served.flatMap(({ cid, parts }) => parts.map((part) => ({ ...part, cid })))
  const total = served.reduce((sum, it) => sum + sizeOf(it), 0)
  await screen.step('Gateway', async (live) => {
    let done = 0
    live(() => `${done} of ${count(files.length, 'file')}, ${bytes(comparison.bytes)} are the same`)
    const began = performance.now()
    const compare = async ({ cid, path, content }: (typeof files)[number]) => {
      const url = await sdk.gateways.public.convert(`ipfs://${cid}`)
      const below = path.split('/').map(encodeURIComponent).join('/')
      await comparison.same(path ? `${url}/${below}` : url, content, signal)
      done++
    }
    // Like a browser that shows a page with many files.
    const rest = files.values()
    const lanes = Array.from({ length: LANES }, async () => {
      for (const file of rest) await compare(file)
    })
    await Promise.all(lanes)
    const perSecond = total / ((performance.now() - began) / 1000)
    return [
      undefined,
      `${count(done, 'file')}, ${bytes(total)}: every byte is the same, ${bytes(perSecond)}/s`,
    ]
  })
  screen.detail(`https://${gateway}/ipfs/…`)
}

/** The README gets a new edition: a swap leads its old address to the new edition, and back. */
async function swap(scene: Scene): Promise<void> {
  const { screen, sdk, kept, comparison, gateway, signal } = scene
  const [old] = kept
  if (!old) throw new Error('nothing was uploaded')
  await screen.step('Swap', async () => {
    const edition = new File(['# A new edition\n'], 'new-README.md', { type: 'text/markdown' })
    const { id, cid: swapCid } = await sdk.upload.public.file(edition)
    kept.push({ ...old, id, cid: swapCid, name: edition.name, parts: [{ path: '', content: edition }] })
    const url = await sdk.gateways.public.convert(`ipfs://${old.cid}`)
    await sdk.files.public.addSwap({ cid: old.cid, swapCid })
    await comparison.same(url, edition, signal)
    await sdk.files.public.deleteSwap(old.cid)
    for (const { content } of old.parts) await comparison.same(url, content, signal)
    const history = await sdk.files.public.getSwapHistory({ cid: old.cid, domain: gateway })
    expectSame(
      'history',
      history.map((entry) => `${entry.mapped_cid}`),
      ['null', swapCid],
    )
    return [undefined, 'the address of README.md led to a new edition, and back']
  })
  screen.detail('files.public.addSwap, deleteSwap, getSwapHistory')
}

async function privateLink({ screen, sdk, kept, comparison, signal }: Scene): Promise<void> {
  const secret = kept.find(({ network }) => network === 'private')
  if (!secret) throw new Error('nothing private was uploaded')
  await screen.step('Link', async (live) => {
    const options = { cid: secret.cid, expires: LINK_SECONDS }
    const link = await sdk.gateways.private.createAccessLink(options)
    for (const { content } of secret.parts) await comparison.same(link, content, signal)
    const { origin, pathname } = new URL(link)
    const without = await refused(`${origin}${pathname}`, signal)
    await refused(`${origin}/ipfs/${secret.cid}`, signal)
    live(() => 'waiting for the link to expire')
    // Berth and this process share a clock; the link is valid for less than this.
    await delay(LINK_SECONDS * 1000, undefined, { signal })
    const late = await refused(link, signal)
    return [undefined, `same bytes; ${without} without the signature, ${late} ${LINK_SECONDS} s later`]
  })
  screen.detail('gateways.private.createAccessLink')
}

/** Deletes everything: afterwards the lists are empty, and the gateway serves none of it. */
export async function remove({ screen, sdk, kept, signal }: Scene): Promise<void> {
  screen.section('Delete')
  await screen.step('Delete', async () => {
    for (const network of ['public', 'private'] as const) {
      const ids = kept.filter((it) => it.network === network).map(({ id }) => id)
      const results = await sdk.files[network].delete(ids)
      expectSame(
        'deleted',
        results.map(({ status }) => status),
        ids.map(() => 'OK'),
      )
      expectSame(
        'left',
        (await sdk.files[network].list().all()).map(({ id }) => id),
        [],
      )
    }
    for (const { cid } of kept) await refused(await sdk.gateways.public.convert(`ipfs://${cid}`), signal)
    return [undefined, `${kept.length} files and folders; the gateway serves none of them now`]
  })
  screen.detail('files.public.delete, files.private.delete')
}
