/** The first act of `npm run demo:files`: everything that can be uploaded. */
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { UploadResponse } from 'pinata'
import { fileAt, filesIn } from './content.ts'
import { bar } from './progress.ts'
import { type Kept, type Scene, short, sizeOf } from './scene.ts'
import { bytes, count } from './screen.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** @param content a folder, and the path of a file so large that the SDK sends it in resumable parts. */
export async function upload(scene: Scene, content: { folder: string; large: string }): Promise<void> {
  const { screen, sdk } = scene
  screen.section('Upload')
  const readme = await fileAt(join(ROOT, 'README.md'), 'README.md', 'text/markdown')
  await send(scene, 'File', 'upload.public.file', whole('README.md', readme), () =>
    sdk.upload.public.file(readme).keyvalues({ demo: 'text' }),
  )
  const settings = { made: new Date().toISOString(), by: 'npm run demo:files' }
  const json = new Blob([JSON.stringify(settings)])
  await send(scene, 'JSON', 'upload.public.json', whole('settings.json', json), () =>
    sdk.upload.public.json(settings).name('settings.json').keyvalues({ demo: 'text' }),
  )
  const files = await filesIn({ path: content.folder })
  const parts = files.map((file) => ({ path: file.name, content: file }))
  await send(scene, 'Folder', 'upload.public.fileArray', { name: 'modules', network: 'public', parts }, () =>
    sdk.upload.public.fileArray(files).name('modules'),
  )
  const large = await fileAt(content.large)
  await send(scene, 'Large file', 'upload.public.file, resumable: TUS', whole(large.name, large), () =>
    sdk.upload.public.file(large),
  )
  const secret = await fileAt(join(ROOT, 'LICENSE'), 'LICENSE', 'text/plain')
  await send(scene, 'Private', 'upload.private.file', whole('LICENSE', secret, 'private'), () =>
    sdk.upload.private.file(secret),
  )
}

const whole = (name: string, content: Blob, network: Kept['network'] = 'public') => ({
  name,
  network,
  parts: [{ path: '', content }],
})

/** Uploads in one step, shows the bytes sent over the network, and checks what Berth reports that it has. */
async function send(
  { screen, kept, sent }: Scene,
  label: string,
  call: string,
  content: Omit<Kept, 'id' | 'cid'>,
  start: () => PromiseLike<UploadResponse>,
): Promise<void> {
  const size = sizeOf(content)
  const { id, cid } = await screen.step(label, async (live) => {
    const [began, before] = [performance.now(), sent()]
    live(() => {
      const done = Math.min(sent() - before, size)
      const perSecond = done / ((performance.now() - began) / 1000)
      const figures = `${(done / 1e6).toFixed(1)} of ${bytes(size)}  ${bytes(perSecond)}/s`
      return `${bar(done / size)}  ${done < size ? figures : 'sent; Berth stores it'}`
    })
    const file = await start()
    const { parts } = content
    if (file.size !== size || file.number_of_files !== parts.length) {
      throw new Error(
        `${file.name}: ${file.size} bytes in ${file.number_of_files}, not ${size} in ${parts.length}`,
      )
    }
    const perSecond = size > 1e6 ? `, ${bytes(size / ((performance.now() - began) / 1000))}/s` : ''
    const files = parts.length > 1 ? `${count(parts.length, 'file')}, ` : ''
    return [file, `${content.name}: ${files}${bytes(size)}${perSecond}`]
  })
  screen.detail(`${call} → ${short(cid)}`)
  kept.push({ ...content, id, cid })
}
