/** Reads dropped or chosen files and folders, including the contents of folders. */
import type { PackedFile } from './pack.worker.ts'

export interface Chosen {
  name: string
  isFolder: boolean
  files: PackedFile[]
}

/** Reads a drop. The entries are available only during the event handler. */
export async function readDrop(transfer: DataTransfer): Promise<Chosen[]> {
  const entries = [...transfer.items].flatMap((item) => item.webkitGetAsEntry() ?? [])
  const chosen = entries.map(async (entry): Promise<Chosen> => {
    if (entry.isDirectory) {
      const files = await filesOf(entry as FileSystemDirectoryEntry, '')
      return { name: entry.name, isFolder: true, files }
    }
    const file = await fileOf(entry as FileSystemFileEntry)
    return { name: file.name, isFolder: false, files: [{ path: file.name, file }] }
  })
  return Promise.all(chosen)
}

/** Reads the files of an input. A folder input gives the path of each file, starting with the folder. */
export function readInput(files: FileList): Chosen[] {
  const folders = new Map<string, Chosen>()
  const chosen: Chosen[] = []
  for (const file of files) {
    const [name = '', ...rest] = file.webkitRelativePath.split('/')
    if (rest.length === 0) {
      chosen.push({ name: file.name, isFolder: false, files: [{ path: file.name, file }] })
      continue
    }
    const folder = folders.get(name) ?? { name, isFolder: true, files: [] }
    folders.set(name, folder)
    folder.files.push({ path: rest.join('/'), file })
  }
  return [...folders.values(), ...chosen]
}

async function filesOf(folder: FileSystemDirectoryEntry, path: string): Promise<PackedFile[]> {
  const reader = folder.createReader()
  const files: PackedFile[] = []
  // A reader returns entries in batches, and an empty batch at the end.
  for (;;) {
    const entries = await new Promise<FileSystemEntry[]>((resolve, reject) =>
      reader.readEntries(resolve, reject),
    )
    if (entries.length === 0) return files
    const found = entries.map(async (entry): Promise<PackedFile[]> => {
      const at = `${path}${entry.name}`
      if (entry.isDirectory) return filesOf(entry as FileSystemDirectoryEntry, `${at}/`)
      return [{ path: at, file: await fileOf(entry as FileSystemFileEntry) }]
    })
    files.push(...(await Promise.all(found)).flat())
  }
}

const fileOf = (entry: FileSystemFileEntry) =>
  new Promise<File>((resolve, reject) => entry.file(resolve, reject))
