/**
 * Makes the objects of one commit from the stream that a worker sends, a part of git-fast-import(1): `feature done`,
 * one commit on {@link IMPORT_REF}, `M <mode> inline <path>` with the files of each folder one after another, `done`.
 */
import { AgentdError } from '../agentd-errors.ts'
import { ByteReader } from '../byte-reader.ts'
import type { Checkout } from './checkout.ts'
import { PackWriter } from './pack-writer.ts'
import type { Imported } from './protocol.ts'

export const IMPORT_REF = 'refs/berth/import'
/** A path has at most 4096 bytes, each of which may take four if it is quoted. */
const LINE_BYTES = 20_000
const MESSAGE_BYTES = 1_048_576
const FOLDER_MODE = '40000'

interface Entry {
  mode: string
  /** Empty until it is known. */
  id: string
}

interface Folder {
  /** Its name in the folder above. Names are one character per byte. */
  name: string
  entries: Map<string, Entry>
}

/**
 * Writes the objects into packs below `folder`.
 * @param checkout also writes the files.
 * @throws AgentdError bad_request for any other stream. Then nothing is left of it.
 */
export async function writeImport(
  stream: AsyncIterable<Buffer>,
  folder: string,
  checkout?: Checkout,
): Promise<Imported> {
  const packs = new PackWriter(folder)
  try {
    const input = new ByteReader(stream, (message) => unfit(`it ${message}`))
    const imported = await readCommit(input, packs, checkout)
    await packs.finish()
    return imported
  } catch (error) {
    await packs.discard()
    await checkout?.discard()
    throw error
  }
}

async function readCommit(
  input: ByteReader,
  packs: PackWriter,
  checkout: Checkout | undefined,
): Promise<Imported> {
  const line = () => input.line(LINE_BYTES)
  if ((await line()) !== 'feature done' || (await line()) !== `commit ${IMPORT_REF}`)
    throw unfit(`it must begin with a commit on ${IMPORT_REF}`)
  const [, committer] = /^committer ([^<>]* <[^<>]*> \d+ [+-]\d{4})$/.exec(await line()) ?? []
  const size = sizeIn(await line())
  if (!committer || size > MESSAGE_BYTES) throw unfit('its commit has no head that is allowed')
  const message: Buffer[] = []
  for await (const chunk of input.take(size)) message.push(chunk)
  if ((await line()) !== '') throw unfit('a text has no end')
  const files = new Tree(packs)
  for (let command = await line(); command !== 'done'; command = await line()) {
    const [, mode, quoted] = /^M (100644|100755|120000) inline (.+)$/.exec(command) ?? []
    if (!mode || !quoted) throw unfit(`it has the command ${JSON.stringify(command.slice(0, 100))}`)
    const bytes = sizeIn(await line())
    const path = unquote(quoted)
    await files.open(path, mode)
    const content = input.take(bytes)
    const id = await packs.add('blob', bytes, checkout ? checkout.write(path, mode, content) : content)
    files.add(id)
    checkout?.add(path, mode, id)
    if ((await line()) !== '') throw unfit('a file has no end')
  }
  await input.end()
  const tree = await files.finish()
  const head = `tree ${tree}\nauthor ${committer}\ncommitter ${committer}\n\n`
  const commit = Buffer.concat([Buffer.from(head, 'latin1'), ...message])
  return { commit: await packs.add('commit', commit.length, [commit]), tree }
}

/** Writes the tree of a folder as soon as its last file was put, so only the folders above a file are in memory. */
class Tree {
  readonly #packs: PackWriter
  readonly #open: Folder[] = [{ name: '', entries: new Map() }]
  #file: Entry = { mode: '', id: '' }

  constructor(packs: PackWriter) {
    this.#packs = packs
  }

  /** Reserves the place of a file. */
  async open(path: string, mode: string): Promise<void> {
    const folders = path.split('/')
    const name = folders.pop() as string
    let depth = 0
    while (depth < folders.length && this.#open[depth + 1]?.name === folders[depth]) depth++
    while (this.#open.length > depth + 1) await this.#close()
    for (const folder of folders.slice(depth)) {
      this.#reserve(folder, FOLDER_MODE)
      this.#open.push({ name: folder, entries: new Map() })
    }
    this.#file = this.#reserve(name, mode)
  }

  /** Names the blob of the file that was opened last. */
  add(id: string): void {
    this.#file.id = id
  }

  /** @returns the id of the whole tree. */
  async finish(): Promise<string> {
    while (this.#open.length > 1) await this.#close()
    return this.#write(this.#open[0] as Folder)
  }

  #reserve(name: string, mode: string): Entry {
    const { entries } = this.#open.at(-1) as Folder
    if (['', '.', '..'].includes(name) || name.includes('\0') || name.toLowerCase() === '.git')
      throw unfit('it has a path that is none')
    if (entries.has(name)) throw unfit('it has a path twice, or a folder in parts')
    const entry = { mode, id: '' }
    entries.set(name, entry)
    return entry
  }

  async #close(): Promise<void> {
    const folder = this.#open.pop() as Folder
    const id = await this.#write(folder)
    this.#open.at(-1)?.entries.set(folder.name, { mode: FOLDER_MODE, id })
  }

  #write({ entries }: Folder): Promise<string> {
    // git sorts a folder as if its name ended with a slash.
    const key = ([name, { mode }]: [string, { mode: string }]) => (mode === FOLDER_MODE ? `${name}/` : name)
    const sorted = [...entries].sort((a, b) => (key(a) < key(b) ? -1 : 1))
    const parts = sorted.flatMap(([name, { mode, id }]) => [
      Buffer.from(`${mode} ${name}\0`, 'latin1'),
      Buffer.from(id, 'hex'),
    ])
    const tree = Buffer.concat(parts)
    return this.#packs.add('tree', tree.length, [tree])
  }
}

function sizeIn(line: string): number {
  const [, size] = /^data (\d{1,15})$/.exec(line) ?? []
  if (size === undefined) throw unfit('a text has no size')
  return Number(size)
}

/** A path, which git quotes or not. */
function unquote(path: string): string {
  if (!path.startsWith('"')) return path
  const [, text] = /^"((?:[^"\\]|\\["\\]|\\[0-3][0-7]{2})*)"$/.exec(path) ?? []
  if (text === undefined) throw unfit('it has a path with wrong quotes')
  return text.replace(/\\(?:([0-7]{3})|(.))/g, (_, octal, character) =>
    octal === undefined ? character : String.fromCharCode(Number.parseInt(octal, 8)),
  )
}

const unfit = (message: string) => new AgentdError('bad_request', `import: ${message}`)
