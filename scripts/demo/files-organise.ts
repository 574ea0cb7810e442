/** The second act of `npm run demo:files`: finding, grouping, and pinning third-party content. */
import { setTimeout as delay } from 'node:timers/promises'
import { pinnedFileCount, totalStorageUsage } from 'pinata'
import { filesIn } from './content.ts'
import type { HostNode } from './host-node.ts'
import { expectSame, type Scene, short, sizeOf } from './scene.ts'
import { bytes, count } from './screen.ts'

const POLL_MS = 100

/** @param other a node with a folder that Berth does not have. */
export async function organise(scene: Scene, other: HostNode, folder: string): Promise<void> {
  scene.screen.section('Organise')
  await list(scene)
  await group(scene)
  await pin(scene, other, folder)
  await usage(scene)
}

const names = (files: { name: string | null }[]) => files.map(({ name }) => `${name}`)

async function list({ screen, sdk, kept }: Scene): Promise<void> {
  const all = names(kept.filter(({ network }) => network === 'public'))
  await screen.step('List', async () => {
    const files = () => sdk.files.public.list().order('ASC')
    expectSame('all, in pages of 2', names(await files().limit(2).all()), all)
    expectSame('by name', names((await files().name('readme')).files), ['README.md'])
    const texts = (await files().keyvalues({ demo: 'text' })).files
    expectSame('by metadata', names(texts), ['README.md', 'settings.json'])
    expectSame('by type', names((await files().mimeType('directory')).files), ['modules'])
    expectSame('of private ones', names((await sdk.files.private.list()).files), ['LICENSE'])
    return [undefined, `${count(all.length, 'file')} in pages of 2; by name, metadata and type`]
  })
  screen.detail('files.public.list, files.private.list')
}

async function group({ screen, sdk, kept }: Scene): Promise<void> {
  await screen.step('Group', async () => {
    const { id: groupId } = await sdk.groups.public.create({ name: 'Demo' })
    const members = kept.filter(({ name }) => name === 'README.md' || name === 'modules')
    await sdk.groups.public.addFiles({ groupId, files: members.map(({ id }) => id) })
    const listed = await sdk.files.public.list().group(groupId).order('ASC')
    expectSame('of the group', names(listed.files), names(members))
    return [undefined, `“Demo” has ${names(members).join(' and ')}`]
  })
  screen.detail('groups.public.create, groups.public.addFiles')
}

async function pin(scene: Scene, other: HostNode, folder: string): Promise<void> {
  const { screen, sdk, kept, signal } = scene
  const { cid } = other
  const pinned = await screen.step('Pin by CID', async (live) => {
    const { id, status } = await sdk.upload.public.cid(cid).name('pinned').peerAddress([other.address])
    let shown = status
    live(() => shown)
    while ((await sdk.files.public.list().cid(cid)).files.length === 0) {
      const [job] = (await sdk.files.public.queue().cid(cid)).jobs
      shown = job?.status ?? shown
      if (job && !PENDING.has(job.status)) throw new Error(`The pin is ${job.status}`)
      await delay(POLL_MS, undefined, { signal })
    }
    await other.stop()
    const parts = (await filesIn({ path: folder })).map((file) => ({ path: file.name, content: file }))
    const content = { id, cid, network: 'public' as const, name: 'pinned', parts }
    const file = await sdk.files.public.get(id)
    const text = `${count(file.number_of_files, 'file')}, ${bytes(file.size)} fetched from a second node`
    return [content, text]
  })
  screen.detail(`upload.public.cid → ${short(cid)}; the second node is stopped now`)
  kept.push(pinned)
}

const PENDING = new Set(['prechecking', 'backfilled', 'searching', 'retrieving'])

async function usage({ screen, sdk, kept }: Scene): Promise<void> {
  await screen.step('Usage', async () => {
    const [size, files] = [await totalStorageUsage(sdk.config), await pinnedFileCount(sdk.config)]
    const expected = kept.reduce((sum, it) => sum + sizeOf(it), 0)
    expectSame('usage', [`${size}`, `${files}`], [`${expected}`, `${kept.length}`])
    return [undefined, `${bytes(size)} in ${count(files, 'file')} and folders`]
  })
}
