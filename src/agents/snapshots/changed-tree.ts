import type { TreeChange } from '../../../agentd/protocol.ts'
import { assertEntryName } from '../../storage/entry-name.ts'
import { StorageError } from '../../storage/port.ts'
import type { Entry } from '../../storage/unixfs-write.ts'

/** Memory that changes may take: more than half a million paths of the usual length. */
const BYTES_LIMIT = 256 * 1024 * 1024
/** What a change takes beside its path. */
const CHANGE_BYTES = 300
/** Folders above a file. Whoever reads a DAG bounds its depth too, shards and the levels of files included. */
const DEPTH_LIMIT = 200

export interface ChangedFile {
  blob: string
  isSymlink: boolean
  /** Once its content is written. */
  entry?: Entry
}

/** What has changed at a name: the file there, what is in the folder there, or both where one became the other. */
export interface Change {
  file?: ChangedFile | 'removed'
  folder?: ChangedFolder
}

export type ChangedFolder = Map<string, Change>

/**
 * Changes as a tree of folders.
 * @throws StorageError `invalid_object` for a path that no file can have, `too_large`, or what `changes` throws.
 */
export async function collectChanges(
  changes: AsyncIterable<TreeChange>,
): Promise<{ root: ChangedFolder; files: ChangedFile[] }> {
  const root: ChangedFolder = new Map()
  const files: ChangedFile[] = []
  let bytes = 0
  for await (const change of changes) {
    bytes += CHANGE_BYTES + 2 * change.path.length
    if (bytes > BYTES_LIMIT) throw new StorageError('too_large', 'There are too many changes')
    const place = placeOf(root, change.path)
    if ('removed' in change) {
      // Where a folder became a file, git says both, in an order of its own.
      place.file ??= 'removed'
      continue
    }
    const file = { blob: change.blob, isSymlink: change.mode === '120000' }
    place.file = file
    files.push(file)
  }
  return { root, files }
}

function placeOf(root: ChangedFolder, path: string): Change {
  const names = path.split('/')
  if (names.length > DEPTH_LIMIT) throw new StorageError('invalid_object', 'A file is nested too deep')
  let folder = root
  let place: Change = {}
  for (const [i, name] of names.entries()) {
    assertEntryName(name)
    const known = folder.get(name)
    place = known ?? {}
    if (!known) folder.set(name, place)
    if (i < names.length - 1) folder = place.folder ??= new Map()
  }
  return place
}
