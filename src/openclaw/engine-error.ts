export type EngineErrorCode =
  /** Not a version, or one that the registry does not have. */
  | 'unknown_version'
  /** The package registry does not answer. */
  | 'offline'
  /** No space is left. */
  | 'disk_full'
  /** The call took longer than its bound. */
  | 'timeout'
  /** The base image is neither there nor can it be pulled. */
  | 'no_base_image'
  /** The engine needs another Node than it would run on. */
  | 'unfit_node'
  /** Agents run the version. */
  | 'in_use'
  | 'failed'

/** An engine version could not be installed, or its image not be built. The message says what to do. */
export class EngineError extends Error {
  override name = 'EngineError'
  readonly code: EngineErrorCode

  constructor(code: EngineErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}
