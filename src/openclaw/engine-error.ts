export type EngineErrorCode =
  /** Not a version, or not in the registry. */
  | 'unknown_version'
  /** The package registry does not answer. */
  | 'offline'
  /** No space is left. */
  | 'disk_full'
  /** The call exceeded its time limit. */
  | 'timeout'
  /** The base image does not exist locally and cannot be pulled. */
  | 'no_base_image'
  /** The engine needs another version of Node. */
  | 'unfit_node'
  /** Agents run the version. */
  | 'in_use'
  | 'failed'

/** An engine version could not be installed, or its image could not be built. The message says what to do. */
export class EngineError extends Error {
  override name = 'EngineError'
  readonly code: EngineErrorCode

  constructor(code: EngineErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}
