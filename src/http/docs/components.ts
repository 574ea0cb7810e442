/** Parts of the document that routes refer to by name: headers, error responses, the key. */
import { messages } from '../../errors.ts'
import { describeShortage } from '../../lib/disk.ts'

type Json = Record<string, unknown>

const text = (description: string, example: string): Json => ({
  description,
  schema: { type: 'string' },
  example,
})
const count = (description: string, example: number): Json => ({
  description,
  schema: { type: 'integer', minimum: 0 },
  example,
})

const OPERATION = '0193a1c4-7d2e-7b1a-9c55-3f0e6a2b8d41'

const headers = {
  'Error-Code': text('A machine-readable error code.', 'bad_request'),
  'Error-Detail': text('Details of the error, if the message itself is fixed.', 'exit code 78'),
  Location: text('Where to follow the operation.', `/v0/operations/${OPERATION}`),
  'Operation-Id': text('The operation that this request started or found.', OPERATION),
  'RateLimit-Limit': count(
    'Requests per minute that the plan allows the key, or its workspace if that is nearer to its limit; absent if the plan has no limit.',
    250,
  ),
  'RateLimit-Remaining': count('Requests left in this minute.', 249),
  'RateLimit-Reset': count('Seconds until the count resets.', 60),
  'Retry-After': count('Seconds after which to retry.', 5),
  'WWW-Authenticate': text('How to authenticate.', 'Bearer'),
  'X-Request-Id': text('The id of this request in the log.', 'f2c9b1d04a6e47d38a55c0e19b7d6a01'),
}
export type HeaderName = keyof typeof headers

/** References to headers, by name. */
export const headerRefs = (...names: HeaderName[]): Json =>
  Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]))

/** @param examples error code → message, exactly as sent. */
const failure = (
  description: string,
  examples: Record<string, string>,
  ...extraHeaders: HeaderName[]
): Json => ({
  description,
  headers: headerRefs('X-Request-Id', 'Error-Code', 'Error-Detail', ...extraHeaders),
  content: {
    'application/json': {
      schema: { $ref: '#/components/schemas/Error' },
      examples: Object.fromEntries(
        Object.entries(examples).map(([code, error]) => [code, { value: { error } }]),
      ),
    },
  },
})

const responses: Record<string, Json> = {
  400: failure('Something is missing or malformed; the message names the field.', {
    bad_request: 'cid: not a CID',
  }),
  401: failure(
    'The API key is missing, unknown, expired, revoked or without a user.',
    {
      no_authorization: messages.noAuthorization,
      bad_token: messages.badToken,
      missing_user_id: messages.missingUserId,
    },
    'WWW-Authenticate',
  ),
  402: failure('The budget for models of the workspace is spent.', {
    budget_exceeded: 'Budget spent: $5.00 per month for this workspace. Resets at 2026-12-01.',
  }),
  403: failure(
    'The key lacks the scope, its user lacks the role, or its workspace’s plan does not include it.',
    {
      missing_scope: 'Missing scope: org:files:write',
      forbidden: messages.permissionDenied,
      plan: messages.pinByCidPlan,
    },
  ),
  404: failure('The workspace has no such resource.', { not_found: 'There is no such file' }),
  408: failure('The body did not arrive in time.', { timeout: 'body: nothing arrived for 60 seconds' }),
  409: failure('The resource is in a state that does not allow this, or the name is taken.', {
    finished: 'The operation has succeeded already',
    not_cancelable: 'A pin.remove operation cannot be cancelled',
    taken: 'domain: is taken',
  }),
  410: failure('The resource existed, but no longer does.', {
    expired: 'The upload was not finished in time',
  }),
  412: failure(
    '`If-Match` or `If-None-Match` fails, or the client speaks another version of tus than 1.0.0.',
    {
      changed_meanwhile: 'The file was changed in the meantime',
      tus_version: 'Tus-Resumable: must be 1.0.0',
    },
  ),
  413: failure('The body is too large.', {
    too_large: 'body: larger than 1 MiB',
    over_max_size: 'file: larger than the 1073741824 bytes that the plan allows for one file',
  }),
  415: failure('The body has a type, encoding or charset that this route does not accept.', {
    bad_request: 'unsupported content encoding "zip"',
  }),
  422: failure('The Idempotency-Key belongs to another request.', {
    idempotency_mismatch: 'Idempotency-Key: already used with another request',
  }),
  423: failure(
    'Another request is working on the resource.',
    { busy: 'The upload is being received or imported: ask again' },
    'Retry-After',
  ),
  429: failure(
    'Too many requests in a minute, or too much work at a time.',
    {
      rate_limited: 'Too many requests: 60 a minute on plan free',
      too_many_at_a_time: 'Too many uploads at a time: 64 of this key',
    },
    'RateLimit-Limit',
    'RateLimit-Remaining',
    'RateLimit-Reset',
    'Retry-After',
  ),
  426: failure('The route is a WebSocket, and the request asks for no upgrade.', {
    upgrade_required: 'This is a WebSocket: ask for an upgrade',
  }),
  // Its request never had an id.
  431: {
    ...failure('The URL and the headers are longer than 16 KiB.', {
      too_long: 'The URL and the headers are longer than 16 KiB',
    }),
    headers: {},
  },
  500: failure('An internal error; the log has the cause.', { internal: 'Internal server error' }),
  502: failure('An agent or a remote server sent an invalid response.', {
    bad_answer: 'The agent sent no valid answer',
  }),
  503: failure(
    'A required component is unavailable, or has no room on its disk. Nothing that was accepted is lost.',
    { unavailable: messages.ipfsUnreachable, no_space: 'No space left: the disk of PostgreSQL is full' },
    'Retry-After',
  ),
  504: failure('An agent or a remote server did not respond in time.', {
    timeout: 'The agent did not answer in time',
  }),
  507: failure(
    'A disk is down to its reserve: nothing new is accepted until there is room. Existing content is served and can be deleted.',
    { no_space: describeShortage('uploads') },
    'Retry-After',
  ),
  PinningService: {
    description: 'Any error under `/psa`: `reason` is the `Error-Code` in upper case.',
    headers: headerRefs('X-Request-Id', 'Error-Code'),
    content: {
      'application/json': {
        schema: { $ref: '#/components/schemas/PinningServiceError' },
        example: { error: { reason: 'NOT_FOUND', details: 'There is no such pin request' } },
      },
    },
  },
}

const requestHeader = (name: string, description: string, example: string, shape: Json = {}): Json => ({
  name,
  in: 'header',
  description,
  schema: { type: 'string', ...shape },
  example,
})

/** Headers of a request that starts an operation. */
export const requestHeaders = {
  prefer: requestHeader(
    'Prefer',
    'RFC 7240: `wait=N` waits up to N seconds (at most 300) for the operation to end; `respond-async` does not wait.',
    'wait=30',
    { format: 'preference' },
  ),
  idempotencyKey: requestHeader(
    'Idempotency-Key',
    'A text of your choice, at most 255 visible ASCII characters. A repeated request finds the operation of the first one.',
    'import-2026-11-21-0001',
    { minLength: 1, maxLength: 255, pattern: '^[!-~]+$' },
  ),
}

export const components = {
  securitySchemes: {
    apiKey: {
      type: 'http',
      scheme: 'bearer',
      bearerFormat: 'JWT',
      description: 'An API key, as printed by `npx berth keys create`.',
    },
    password: {
      type: 'http',
      scheme: 'basic',
      description: 'For git: any user name, and a key or the agent’s gateway token as the password.',
    },
  },
  schemas: {
    Error: {
      type: 'object',
      required: ['error'],
      properties: { error: { type: 'string', description: 'For people.' } },
    },
    PinningServiceError: {
      type: 'object',
      required: ['error'],
      properties: {
        error: {
          type: 'object',
          required: ['reason', 'details'],
          properties: {
            reason: { type: 'string', description: 'For machines.' },
            details: { type: 'string', description: 'For people.' },
          },
        },
      },
    },
  },
  headers,
  responses,
}
