/** Files to and from Berth. */
import { createWriteStream } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { allItems, type Berth, upload, uploadFolder } from '../../../typescript/src/index.ts'
import { pairs } from '../arguments.ts'
import { command } from '../command.ts'
import { AdvisedError, UsageError } from '../errors.ts'
import { findFile, type Network } from '../find.ts'
import { bytes } from '../format.ts'
import { linkTo, open } from '../gateway.ts'
import { type Local, openLocal, stdinAsBlob } from '../local-files.ts'
import { Progress } from '../progress.ts'
import { paint } from '../terminal.ts'

type File = Awaited<ReturnType<typeof findFile>>

export const transferCommands = [
  command({
    name: 'files add',
    summary: 'upload files and folders; private, unless --public',
    usage: '<path...>',
    options: {
      public: { about: 'on the public network, where anyone may read it' },
      name: { about: 'its name; by default that of the file or folder', value: 'name' },
      group: { about: 'put it into this group', value: 'id' },
      keyvalue: { about: 'describe it: --keyvalue author=ada', value: 'name=value', many: true },
      hidden: { about: 'include hidden files of a folder, such as .git and .env' },
    },
    more: `\`-\` reads stdin, with --name. In a terminal it also prints a link.

  berth files add --public site/
  tar c notes | berth files add - --name notes.tar`,
    async run({ berth, target, args, options, json, signal }) {
      if (options.name && args.length > 1) throw new UsageError('--name is for one file or folder')
      const network = options.public ? ('public' as const) : ('private' as const)
      const settings = { network, groupId: options.group, keyvalues: pairs(options.keyvalue), signal }
      const added: { id: string; cid: string; network: Network; url?: string }[] = []
      for (const path of args) {
        const local = await read(path, options)
        if (local.hidden > 0)
          console.error(
            paint('dim', `left out ${local.hidden} hidden files (--hidden includes them)`, process.stderr),
          )
        const file = { ...(await send(berth, local, options.name ?? local.name, settings)), network }
        const url = await linkTo(berth, target.url, file).catch(() => undefined)
        added.push({ ...file, ...(url && { url }) })
        if (!json) console.log(added.length === 1 && args.length === 1 ? file.cid : `${file.cid}  ${path}`)
        if (!json && url && process.stdout.isTTY) console.log(paint('dim', url))
      }
      return { data: added, text: '' }
    },
  }),
  command({
    name: 'files get',
    summary: 'download a file or folder, or print a file with `-`',
    usage: '<id-or-cid> [to]',
    async run({ berth, target, args: [named, to], json, signal }) {
      const file = await findFile(berth, named)
      const place = to ?? basename(file.name || file.cid)
      using progress = new Progress(place)
      const fetchTo = async (path: string, at: string) => {
        const body = await open(await linkTo(berth, target.url, file, { path }), signal)
        const total = Number(body.headers['content-length']) || file.size
        let received = 0
        const counted = new Transform({
          transform(chunk: Buffer, _, done) {
            received += chunk.length
            progress.show(`${at}  ${bytes(received)} of ${bytes(total)}`, received / Math.max(total, 1))
            done(null, chunk)
          },
        })
        if (at === '-') await pipeline(body, counted, process.stdout, { end: false })
        else await pipeline(body, counted, createWriteStream(at))
      }
      const isFolder = file.mime_type === 'directory'
      if (isFolder && place === '-') throw new UsageError('a folder cannot be printed')
      if (isFolder)
        await eachFile(berth, file, '', (path) => toFolder(join(place, path), (at) => fetchTo(path, at)))
      else await fetchTo('', place)
      return place === '-' ? undefined : { data: { ...file, to: place }, text: json ? '' : place }
    },
  }),
]

interface ReadOptions {
  name: string | undefined
  hidden: boolean
}

async function read(path: string, { name, hidden }: ReadOptions): Promise<Local> {
  if (path !== '-') return openLocal(path, { withHidden: hidden })
  if (!name) throw new UsageError('stdin needs --name')
  const content = await stdinAsBlob()
  return { name, content, bytes: content.size, hidden: 0 }
}

type Settings = Parameters<typeof uploadFolder>[3] & {}

async function send(berth: Berth, local: Local, name: string, settings: Settings) {
  // Awaited here: the line lasts as long as the upload.
  using progress = new Progress(`${name}  ${bytes(local.bytes)}`)
  if (local.content instanceof Blob)
    return await upload(berth, local.content, { ...settings, name, onProgress: progress.sent(name) })
  if (local.content.length === 0)
    throw new AdvisedError(`${name} has no files`, '--hidden includes hidden ones')
  return await uploadFolder(berth, name, local.content, settings)
}

/** Calls `act` with the path of each file in a folder. */
async function eachFile(
  berth: Berth,
  file: File,
  path: string,
  act: (path: string) => Promise<void>,
): Promise<void> {
  const entries = allItems((page) =>
    berth.GET('/v0/files/{network}/{id}/entries', {
      params: { path: { network: file.network, id: file.id }, query: { path, ...page } },
    }),
  )
  for await (const { name, type } of entries) {
    // A name from the network must not leave the folder.
    if (name === '..' || name === '.' || /[/\\\0]/.test(name))
      throw new Error(`the folder has a file named ${name}`)
    const at = path ? `${path}/${name}` : name
    if (type === 'directory') await eachFile(berth, file, at, act)
    else await act(at)
  }
}

async function toFolder(at: string, write: (at: string) => Promise<void>): Promise<void> {
  await mkdir(dirname(at), { recursive: true })
  await write(at)
}
