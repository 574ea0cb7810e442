import { StorageError } from './port.ts'

/** As long as a file system takes them. */
const NAME_BYTES = 255

/**
 * Checks a name that is to become a file's: it must not leave its folder, nor be git's own, which git refuses in
 * any case.
 * @throws StorageError `invalid_object`
 */
export function assertEntryName(name: string): void {
  const isUsual = name !== '' && name !== '.' && name !== '..' && !/[/\0]/.test(name)
  if (isUsual && !/^\.git$/i.test(name) && name.isWellFormed() && Buffer.byteLength(name) <= NAME_BYTES)
    return
  throw new StorageError(
    'invalid_object',
    `A file cannot have the name ${JSON.stringify(name.slice(0, 300))}`,
  )
}
