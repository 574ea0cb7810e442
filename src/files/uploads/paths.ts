import { badRequest } from '../../errors.ts'

const MAX_PATH_BYTES = 4096
const MAX_NAME_BYTES = 255
const MAX_DEPTH = 64

/** The file names of one upload, checked as they come: together they are one file, or a folder. */
export class UploadPaths {
  readonly #files = new Set<string>()
  readonly #folders = new Set<string>()
  #isFolder = false
  /** The first name of every path so far; null when they differ, or one has no other. */
  #root: string | null = null

  /**
   * Takes a file's name; slashes in it make folders.
   * @throws ApiError 400 for a path that is not relative, too long or deep, or in another's place, and for
   *   a file without a name beside others.
   */
  add(path: string): void {
    if (this.#files.size > 0 && (path === '' || this.#files.has(''))) {
      throw badRequest('file: each of several files needs a file name')
    }
    const names = path.split('/')
    if (path !== '') checkPath(path, names)
    if (this.#files.has(path)) throw wrongPath(path, 'comes twice')
    if (this.#folders.has(path)) throw wrongPath(path, 'is a folder as well')
    for (let depth = 1; depth < names.length; depth++) {
      const folder = names.slice(0, depth).join('/')
      if (this.#files.has(folder)) throw wrongPath(folder, 'is a folder as well')
      this.#folders.add(folder)
    }
    const root = names.length > 1 ? (names[0] ?? null) : null
    this.#root = this.#files.size === 0 || this.#root === root ? root : null
    this.#files.add(path)
    this.#isFolder = names.length > 1 || this.#files.size > 1
  }

  get size(): number {
    return this.#files.size
  }

  /** Whether they make a folder: several files, or one with a path. */
  get isFolder(): boolean {
    return this.#isFolder
  }

  /** The folder that all of them are in, if there is one: the upload is that folder, not one around it. */
  get root(): string | null {
    return this.#root
  }

  /** What the upload is called: the file's name, the folder's, or null. */
  get name(): string | null {
    if (this.#isFolder) return this.#root
    const [path] = this.#files
    return path || null
  }
}

function checkPath(path: string, names: string[]): void {
  if (Buffer.byteLength(path) > MAX_PATH_BYTES) {
    throw badRequest(`file: a path has at most ${MAX_PATH_BYTES} bytes`)
  }
  if (/[\0\\]/.test(path)) throw wrongPath(path, 'has a backslash or NUL')
  if (names.length > MAX_DEPTH) throw wrongPath(path, `is deeper than ${MAX_DEPTH} folders`)
  if (names.some((name) => name === '' || name === '.' || name === '..')) {
    throw wrongPath(path, 'is not a relative path without empty, . and .. parts')
  }
  if (names.some((name) => Buffer.byteLength(name) > MAX_NAME_BYTES)) {
    throw wrongPath(path, `has a name of more than ${MAX_NAME_BYTES} bytes`)
  }
}

const wrongPath = (path: string, what: string) => badRequest(`file: ${JSON.stringify(path)} ${what}`)
