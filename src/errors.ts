/**
 * The error class of the API, the contract's message strings, and the shape of errors of the parts that Berth depends
 * on. An {@link ApiError} is a response; anything else that is thrown is a bug or an outage, and becomes a plain 500 or
 * 503.
 */

export class ApiError extends Error {
  readonly status: number
  /** Machine-readable, sent in the `Error-Code` header: the body only carries `error` (contract 2.3). */
  readonly code: string
  readonly headers: Record<string, string>

  /** @param message the text for the client; the cause is only logged. */
  constructor(
    status: number,
    code: string,
    message: string,
    options: ErrorOptions & { headers?: Record<string, string> | undefined } = {},
  ) {
    super(message, options)
    this.name = 'ApiError'
    this.status = status
    this.code = code
    this.headers = options.headers ?? {}
  }
}

export const badRequest = (message: string) => new ApiError(400, 'bad_request', message)
export const unauthorized = (message: string, code = 'unauthorized') =>
  new ApiError(401, code, message, { headers: { 'www-authenticate': 'Bearer' } })
export const forbidden = (message: string, code = 'forbidden') => new ApiError(403, code, message)
export const notFound = (message: string) => new ApiError(404, 'not_found', message)
export const unavailable = (message: string, cause?: unknown) =>
  new ApiError(503, 'unavailable', message, { cause, headers: { 'retry-after': '5' } })
/** A component has no room on its disk. @param message names the component; it is shown to every client. */
export const full = (message: string, cause?: unknown) =>
  new ApiError(503, 'no_space', message, { cause, headers: { 'retry-after': '60' } })

/**
 * A response whose message is fixed by the contract: details go into the `Error-Detail` header (ASCII, at most 500
 * characters).
 */
export function contractError(
  status: number,
  code: string,
  message: string,
  detail?: string,
  options: ErrorOptions & { headers?: Record<string, string> } = {},
): ApiError {
  const headers = detail ? { 'error-detail': headerText(detail), ...options.headers } : options.headers
  return new ApiError(status, code, message, { ...options, headers })
}

const headerText = (text: string) =>
  text
    .replace(/\s+/g, ' ')
    .replace(/[^\x20-\x7e]/g, '?')
    .trim()
    .slice(0, 500)

/**
 * Strings of contract 7.2, and strings that the contract leaves open, each in one place. Messages that name a field or
 * a number, such as `An agent can have at most 5 domains`, are defined where they are thrown.
 */
export const messages = {
  missingUserId: 'Missing userId',
  noAuthorization: 'Missing Authorization header: send "Authorization: Bearer <API key>"',
  badToken: 'Invalid, expired or revoked API key',
  mcpOnly: 'This key works only at /mcp',
  sessionEnded: 'The session has ended: sign in again',
  otherOrigin: 'Requests of a session come from the dashboard alone',
  permissionDenied: 'Workspace permission denied',
  sessionNeeded: 'Only a session of the dashboard may do this: sign in at /login',
  pinByCidPlan: 'Pin by CID is not part of the free plan',
  carPlan: 'CAR upload is not part of the free plan',
  ipfsUnreachable: 'IPFS node unreachable',
  agentLimit: 'Agent limit reached',
  gatewayFailed: 'Gateway failed to start',
  invalidVersion: 'Invalid version',
  restartFailed: 'Restart failed',
  scriptLaunchFailed: 'Script launch failed',
  unsupportedChannel: 'Unsupported channel',
  configurationFailed: 'Configuration failed',
  removalFailed: 'Removal failed',
  invalidCommand: 'Invalid command',
  executionFailed: 'Execution failed',
  invalidConfig: 'Invalid JSON or invalid config',
  validationFailed: 'Validation command failed',
  readConfigFailed: 'Failed to read config',
  writeConfigFailed: 'Failed to write config',
  fileTooLarge: 'File too large',
  cliError: 'CLI error',
  tokenFailed: 'Token generation failed',
  secretsNotConfigured: 'Secrets not configured',
  duplicateSecret: 'Duplicate secret name',
  conflictingSecrets: 'Conflicting secrets',
  secretLimit: 'Secret limit reached',
  invitationLimit: 'Invitation limit reached',
  passkeyLimit: 'Passkey limit reached',
  identityLimit: 'Identity limit reached',
  webhookLimit: 'Webhook limit reached',
  feedbackLimit: 'Feedback limit reached',
  invalidParameters: 'Invalid parameters',
  createTaskFailed: 'Failed to create cron job',
  listTasksFailed: 'Failed to list cron jobs',
  storageNotConfigured: 'Storage not configured',
  syncFailed: 'Sync failed',
  invalidSnapshotCid: 'Invalid snapshot CID',
  snapshotNotFound: 'Snapshot not found',
  resetFailed: 'Reset failed',
  domainsPlan: 'Custom domains are not part of the free plan',
  noAgent: 'There is no such agent',
  noIssues: 'Issues are not available',
  agentNotReady: 'The agent is not ready yet',
  agentNotRunning: 'The agent is not running',
  channelsPlan: 'Channels are not part of the free plan',
} as const

/**
 * A part that Berth depends on did not do what it was asked: a store, the sandbox of an agent, its engine, its agentd.
 */
export class PartError<Code extends string = string> extends Error {
  readonly code: Code

  constructor(code: Code, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }

  /** True while the part is away: the same call may succeed later. */
  get isAway(): boolean {
    return false
  }
}

/** For `catch`: returns undefined for the error of a part with one of these codes, and throws any other error. */
export const ignoring =
  (...codes: string[]) =>
  (error: unknown): undefined => {
    if (!(error instanceof PartError) || !codes.includes(error.code)) throw error
  }

export type SandboxErrorCode =
  /** The service that runs sandboxes (Docker, the API server) does not respond. */
  | 'unreachable'
  /** No sandbox has this id. */
  | 'not_found'
  /** The engine version does not exist and cannot be created. */
  | 'no_image'
  /** The cluster has no room for it now: its quota is used up, or no node accepts it. */
  | 'no_room'
  /** No space is left. */
  | 'disk_full'
  /** A new agent could read Berth's keys, which the operator has not accepted. */
  | 'not_walled'
  /** This machine does not meet a need of the engine. */
  | 'unmet_need'
  /** The kernel killed it for memory during its start. */
  | 'out_of_memory'
  | 'internal'

/** A sandbox or its engine; the message says what to do. */
export class SandboxError extends PartError<SandboxErrorCode> {
  override name = 'SandboxError'

  override get isAway(): boolean {
    // Room in a cluster returns like a service: by itself, or through the operator.
    return this.code === 'unreachable' || this.code === 'no_room'
  }
}

/** A setting is invalid; the message names it and the problem. */
export class ConfigError extends Error {
  override name = 'ConfigError'
}

/** The embedded PostgreSQL cannot start or stop. The message is for the person who typed `npm start`. */
export class PostgresStartError extends Error {
  override name = 'PostgresStartError'
}
