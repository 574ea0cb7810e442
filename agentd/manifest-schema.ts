/**
 * `manifest.json` v1 as a JSON Schema. It is published verbatim, and `manifest-check.ts` reads it for the messages:
 * this is the only place that defines what is allowed.
 *
 * Objects are closed, because an unknown field would go unnoticed and do nothing. A key that begins with `_` is a
 * comment, anywhere; manifests of the public starter contain `_docs`.
 */
import { AGENTD_PORT, GATEWAY_PORT } from './protocol.ts'

type TypeName = 'object' | 'array' | 'string' | 'integer' | 'number' | 'boolean' | 'null'

/** The part of JSON Schema 2020-12 that manifests need, and that `manifest-check.ts` supports. */
export interface Schema {
  $schema?: string
  $id?: string
  title?: string
  description?: string
  default?: unknown
  type?: TypeName | readonly TypeName[]
  const?: unknown
  enum?: readonly unknown[]
  required?: readonly string[]
  properties?: Readonly<Record<string, Schema>>
  patternProperties?: { '^_': true }
  /** False for a closed object, or the schema of all other properties. */
  additionalProperties?: false | Schema
  propertyNames?: Schema
  maxProperties?: number
  items?: Schema
  minItems?: number
  maxItems?: number
  minLength?: number
  maxLength?: number
  pattern?: string
  /** The rule of `pattern` in words, for messages and editors. */
  patternErrorMessage?: string
  minimum?: number
  maximum?: number
  /** Reserved values. */
  not?: { enum: readonly unknown[] }
  /** Exactly one of these fields. */
  oneOf?: readonly { required: readonly [string] }[]
  /** Rules for objects with a certain value in a field. */
  allOf?: readonly { if: Schema; then: Schema }[]
}

const object = (properties: Record<string, Schema>, more: Schema = {}): Schema => ({
  type: 'object',
  properties,
  patternProperties: { '^_': true },
  additionalProperties: false,
  ...more,
})
const list = (maxItems: number, items: Schema): Schema => ({ type: 'array', maxItems, items })
const pattern = (pattern: string, patternErrorMessage: string): Schema => ({ pattern, patternErrorMessage })
/** PostgreSQL, environments and command lines cannot contain NUL. */
const NO_NUL = pattern('^[^\\u0000]*$', 'must not contain NUL')
const text = (maxLength: number): Schema => ({ type: 'string', maxLength, ...NO_NUL })
const optional = (schema: Schema): Schema => ({ ...schema, type: ['string', 'null'] })
/** Invisible characters besides controls: blanks, formats such as the zero-width space, and fillers. */
const INVISIBLE = '\\s\\p{Z}\\p{Cf}\\p{Default_Ignorable_Code_Point}\\u2800'
const filled = (maxLength: number): Schema => ({
  type: 'string',
  maxLength,
  ...pattern(`^[^\\u0000]*[^${INVISIBLE}\\p{Cc}][^\\u0000]*$`, 'must have a visible character'),
})
const flag = (fallback: boolean): Schema => ({ type: 'boolean', default: fallback })
const webAddress: Schema = {
  type: ['string', 'null'],
  maxLength: 2048,
  ...pattern('^https?://[^\\s\\u0000]+$', 'must be an http or https address'),
}
const VARIABLE = '[A-Z_][A-Z0-9_]{0,127}'
const MODEL = pattern('^[^\\s\\u0000/]+/[^\\s\\u0000]+$', 'must be like provider/model')

/**
 * Characters that would break a line or markup where a name is shown, or change the direction of the surrounding text.
 */
const BANNED = '\\p{Cc}\\u2028\\u2029\\u202a-\\u202e\\u2066-\\u2069<>"`\\\\'

const agent = object(
  {
    name: {
      type: 'string',
      minLength: 1,
      maxLength: 100,
      // The same rules as in `POST /v0/agents`.
      ...pattern(
        `^[^${BANNED}]*[^${INVISIBLE}${BANNED}][^${BANNED}]*$`,
        'must not be blank, nor contain control characters, line breaks or any of < > " ` \\',
      ),
    },
    description: optional(text(10_000)),
    vibe: optional(text(200)),
    emoji: optional(text(32)),
    protocols: list(2, { enum: ['a2a', 'mcp'] }),
  },
  { required: ['name'] },
)

const secret = object(
  {
    name: { type: 'string', ...pattern(`^${VARIABLE}$`, 'must be a name of a variable like MY_KEY') },
    description: optional(text(2000)),
    required: flag(true),
    guideUrl: webAddress,
    guideSteps: list(20, text(1000)),
  },
  { required: ['name'] },
)

const skill = object(
  {
    name: filled(200),
    cid: {
      type: 'string',
      maxLength: 200,
      ...pattern('^(Qm[1-9A-HJ-NP-Za-km-z]{44}|[a-z][A-Za-z0-9]{20,})$', 'must be a CID'),
    },
    clawhub_slug: {
      type: 'string',
      maxLength: 200,
      ...pattern('^(@[A-Za-z0-9_-]+/)?[A-Za-z0-9_-]+$', 'must be like @owner/name'),
    },
  },
  { oneOf: [{ required: ['cid'] }, { required: ['clawhub_slug'] }] },
)

const MAX_MS = 10 * 365 * 86_400_000
const CRON = pattern('^\\s*\\S+(\\s+\\S+){4}\\s*$', 'must have 5 fields')
const staggerMs: Schema = { type: 'integer', minimum: 0, maximum: MAX_MS }
const kind = (name: string): Schema => ({ const: name })
/** An object whose `kind` selects one of these schemas. */
const oneOfKinds = (kinds: Record<string, Schema>, more: Schema = {}): Schema => ({
  ...more,
  required: ['kind'],
  properties: { kind: { enum: Object.keys(kinds) } },
  allOf: Object.entries(kinds).map(([name, then]) => ({
    // Without the type, anything that is not an object would match every `if`.
    if: { type: 'object', required: ['kind'], properties: { kind: kind(name) } },
    then,
  })),
})

const schedule = oneOfKinds(
  {
    at: object(
      {
        kind: kind('at'),
        at: {
          type: 'string',
          ...pattern(
            '^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}(:\\d{2}(\\.\\d+)?)?(Z|[+-]\\d{2}:\\d{2})?$',
            'must be an ISO 8601 time',
          ),
        },
      },
      { required: ['at'] },
    ),
    every: object(
      { kind: kind('every'), everyMs: { type: 'integer', minimum: 60_000, maximum: MAX_MS }, staggerMs },
      { required: ['everyMs'] },
    ),
    cron: object(
      {
        kind: kind('cron'),
        expr: { type: 'string', maxLength: 200, ...CRON },
        tz: {
          type: 'string',
          maxLength: 64,
          ...pattern('^[A-Za-z][A-Za-z0-9_+/-]*$', 'must be an IANA time zone'),
        },
        staggerMs,
      },
      { required: ['expr'] },
    ),
  },
  { type: ['string', 'object'], maxLength: 200, ...CRON },
)

const words = { text: filled(100_000), message: filled(100_000) }
const ONE_TEXT = { oneOf: [{ required: ['message'] }, { required: ['text'] }] } as const
const payload = oneOfKinds(
  {
    agentTurn: object(
      {
        kind: kind('agentTurn'),
        ...words,
        model: filled(200),
        thinking: filled(50),
        timeoutSeconds: { type: 'integer', minimum: 1, maximum: 86_400 },
      },
      ONE_TEXT,
    ),
    systemEvent: object({ kind: kind('systemEvent'), ...words }, ONE_TEXT),
  },
  { type: 'object' },
)

const delivery = object(
  {
    mode: { enum: ['none', 'announce', 'webhook'] },
    channel: filled(100),
    to: filled(2048),
    bestEffort: { type: 'boolean' },
  },
  { required: ['mode'] },
)

const task = object(
  {
    name: filled(200),
    description: optional(text(10_000)),
    enabled: flag(true),
    schedule,
    payload,
    prompt: {
      ...filled(100_000),
      description: 'Older form: short for a payload that is a turn of the agent.',
    },
    delivery,
    sessionTarget: { enum: ['main', 'isolated'] },
    wakeMode: { enum: ['now', 'next-heartbeat'] },
  },
  { required: ['name', 'schedule'], oneOf: [{ required: ['payload'] }, { required: ['prompt'] }] },
)

const route = object(
  {
    port: { type: 'integer', minimum: 1025, maximum: 65_535, not: { enum: [GATEWAY_PORT, AGENTD_PORT] } },
    path: {
      type: 'string',
      maxLength: 200,
      ...pattern(
        '^/(?!(v0|chat|config)(/|$))([A-Za-z0-9_-]+(/[A-Za-z0-9_-]+)*)?$',
        'must begin with /, have letters, digits, - and _ only, and not be below /v0, /chat or /config',
      ),
    },
    protected: {
      ...flag(true),
      description: 'Whether the route requires the gateway token. In a manifest the default is true.',
    },
  },
  { required: ['port', 'path'] },
)

const SCALARS = ['string', 'number', 'integer', 'boolean']
const scalar = {
  description: text(1000),
  enum: { ...list(50, { type: ['string', 'number'], maxLength: 200, ...NO_NUL }), minItems: 1 },
  minimum: { type: 'number' },
  maximum: { type: 'number' },
} satisfies Record<string, Schema>
const ofType = (types: string[], more: Record<string, Schema>) =>
  object({ type: { enum: types }, ...more }, { required: ['type'] })

/** A tool that other agents may call by MCP: a script, and the arguments that it takes. */
const tool = object(
  {
    name: {
      type: 'string',
      ...pattern('^[A-Za-z][A-Za-z0-9_-]{0,63}$', 'must be a name like find_book, of at most 64 characters'),
      not: { enum: ['message'] },
    },
    description: filled(2000),
    input: {
      description: 'The arguments, in the part of JSON Schema that all clients understand.',
      ...object(
        {
          type: { const: 'object' },
          properties: {
            type: 'object',
            maxProperties: 20,
            propertyNames: pattern('^[A-Za-z][A-Za-z0-9_]{0,63}$', 'must be a name like max_results'),
            additionalProperties: ofType([...SCALARS, 'array'], {
              ...scalar,
              items: ofType(SCALARS, scalar),
            }),
          },
          required: list(20, { type: 'string' }),
        },
        { required: ['type'] },
      ),
    },
    command: { ...filled(10_000), description: 'A shell runs it, with the arguments as JSON on its stdin.' },
  },
  { required: ['name', 'description', 'command'] },
)

const token: Schema = {
  type: 'string',
  description: 'Never the token itself: a manifest is part of snapshots and of pushes.',
  ...pattern(`^env:${VARIABLE}$`, 'must be env:NAME, with the name of an attached secret'),
}
const admission = {
  enabled: flag(true),
  dmPolicy: { enum: ['open', 'pairing', 'allowlist', 'disabled', 'closed'] },
  allowFrom: list(1000, {
    type: ['string', 'integer'],
    maxLength: 100,
    ...pattern('^[^\\p{Cc}]*[^\\s\\p{Cc}][^\\p{Cc}]*$', 'must name a sender'),
  }),
} satisfies Record<string, Schema>

const template = object({
  slug: {
    type: 'string',
    maxLength: 100,
    ...pattern('^[a-z0-9]+(-[a-z0-9]+)*$', 'must have lower-case letters, digits and single hyphens only'),
  },
  category: filled(100),
  tags: list(10, filled(50)),
  partnerName: optional(text(200)),
  partnerUrl: webAddress,
  partnerLogoUrl: webAddress,
  authorName: optional(text(200)),
  authorUrl: webAddress,
  authorLogoUrl: webAddress,
  paid: object(
    { amount: { type: 'number', minimum: 0, maximum: 1_000_000 }, currency: filled(20) },
    { required: ['amount', 'currency'] },
  ),
})

export const MANIFEST_SCHEMA: Schema = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  title: 'manifest.json of an agent, version 1',
  ...object(
    {
      $schema: { type: 'string' },
      version: { const: 1 },
      engine: { enum: ['openclaw', 'hermes'], default: 'openclaw' },
      agent,
      model: {
        description: 'provider/model, or {"primary": "provider/model"} as in older manifests.',
        type: ['string', 'object'],
        maxLength: 200,
        ...MODEL,
        ...withoutType(
          object({ primary: { type: 'string', maxLength: 200, ...MODEL } }, { required: ['primary'] }),
        ),
      },
      secrets: list(100, secret),
      skills: list(10, skill),
      tasks: list(20, task),
      scripts: object({ build: text(10_000), start: text(10_000) }),
      routes: list(10, route),
      mcp: object({ tools: list(20, tool) }),
      channels: object({
        telegram: object({ botToken: token, ...admission }),
        slack: object({ botToken: token, appToken: token, ...admission }),
        discord: object({ botToken: token, ...admission }),
        whatsapp: object({ ...admission }),
      }),
      template,
    },
    { required: ['version', 'agent'] },
  ),
}

function withoutType({ type: _, ...rest }: Schema): Schema {
  return rest
}
