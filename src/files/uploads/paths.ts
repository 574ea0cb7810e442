import { badRequest } from '../../errors.ts'
import { isVisible } from '../../lib/visible.ts'

const MAX_PATH_BYTES = 4096
const MAX_NAME_BYTES = 255
const MAX_DEPTH = 64

/** Each folder is a block on disk, even without any file bytes, so there may be as many folders as files. */
const MAX_FOLDERS = 10_000
/**
 * Maximum bytes of all paths together, which stay in memory until the upload ends: about 400 for each of 10,000 files.
 */
const MAX_ALL_BYTES = 4_194_304

/** The entries of a folder, by name. */
type Folder = Map<string, Folder | 'file'>

/** The file names of one upload, checked as they arrive: together they form one file, or a folder. */
export class UploadPaths {
  readonly #tree: Folder = new Map()
  #files = 0
  #folders = 0
  #bytes = 0
  /** The path of the first file. */
  #first = ''
  #isFolder = false
  /** The first name that all paths so far share; null if they differ, or a path has only one name. */
  #root: string | null = null

  /**
   * Adds a file's name; slashes in it create folders.
   * @throws ApiError 400 if a path is not relative, too long, too deep, or conflicts with another; if one of several
   *   files has no name; and for too many folders or too long paths in total.
   */
  add(path: string): void {
    if (this.#files > 0 && (path === '' || this.#tree.has(''))) {
      throw badRequest('file: each of several files needs a file name')
    }
    const names = path.split('/')
    if (path !== '') checkPath(path)
    this.#bytes += Buffer.byteLength(path)
    if (this.#bytes > MAX_ALL_BYTES) {
      throw badRequest(`file: the paths of one upload have at most ${MAX_ALL_BYTES} bytes in all`)
    }
    this.#place(path, names)
    const root = names.length > 1 ? (names[0] ?? null) : null
    this.#root = this.#files === 0 || this.#root === root ? root : null
    if (this.#files === 0) this.#first = path
    this.#files++
    this.#isFolder = names.length > 1 || this.#files > 1
  }

  #place(path: string, names: string[]): void {
    let folder = this.#tree
    for (const [depth, name] of names.slice(0, -1).entries()) {
      let next = folder.get(name)
      if (next === 'file') throw wrongPath(names.slice(0, depth + 1).join('/'), 'is a folder as well')
      if (!next) {
        if (++this.#folders > MAX_FOLDERS) {
          throw badRequest(`file: one upload has at most ${MAX_FOLDERS} folders`)
        }
        next = new Map()
        folder.set(name, next)
      }
      folder = next
    }
    const name = names.at(-1) ?? ''
    const existing = folder.get(name)
    if (existing) throw wrongPath(path, existing === 'file' ? 'comes twice' : 'is a folder as well')
    folder.set(name, 'file')
  }

  get size(): number {
    return this.#files
  }

  /** True if the paths form a folder: there are several files, or one with a path. */
  get isFolder(): boolean {
    return this.#isFolder
  }

  /** The folder that contains all paths, if any: the upload is that folder, not a folder around it. */
  get root(): string | null {
    return this.#root
  }

  /** The name of the upload: the file's or the folder's; null if it shows nothing visible. */
  get name(): string | null {
    const name = this.#isFolder ? this.#root : this.#first
    return name && isVisible(name) ? name : null
  }
}

/** @param field names the path in errors. @throws ApiError 400 if a path is not relative, too long or too deep. */
export function checkPath(path: string, field = 'file'): void {
  const names = path.split('/')
  const wrong = (what: string) => wrongPath(path, what, field)
  if (Buffer.byteLength(path) > MAX_PATH_BYTES) {
    throw badRequest(`${field}: a path has at most ${MAX_PATH_BYTES} bytes`)
  }
  if (/[\0\\]/.test(path)) throw wrong('has a backslash or NUL')
  if (names.length > MAX_DEPTH) throw wrong(`is deeper than ${MAX_DEPTH} folders`)
  if (names.some((name) => name === '' || name === '.' || name === '..')) {
    throw wrong('is not a relative path without empty, . and .. parts')
  }
  if (names.some((name) => Buffer.byteLength(name) > MAX_NAME_BYTES)) {
    throw wrong(`has a name of more than ${MAX_NAME_BYTES} bytes`)
  }
}

const wrongPath = (path: string, what: string, field = 'file') =>
  badRequest(`${field}: ${JSON.stringify(path)} ${what}`)
