import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Ajv2020 } from 'ajv/dist/2020.js'
import fc from 'fast-check'
import { checkManifest } from './manifest-check.ts'
import { MANIFEST_SCHEMA } from './manifest-schema.ts'

const ajv = new Ajv2020({ allErrors: true, strictTypes: false, strictRequired: false })
ajv.addKeyword('patternErrorMessage')
const isValid = ajv.compile(MANIFEST_SCHEMA)

const base = { version: 1, agent: { name: 'Pilot' } }
const CID = 'bafybeigum5juaj7faldszh7fpc6j2w23susjajvtzh6nh7vgi2eoiyvzf4'
const errorsOf = (value: unknown): string[] => {
  const result = checkManifest(typeof value === 'string' ? value : JSON.stringify(value))
  return 'errors' in result ? result.errors : []
}
const times = <T>(count: number, make: (index: number) => T) =>
  Array.from({ length: count }, (_, i) => make(i))

const withTool = (more: object) => ({
  ...base,
  mcp: { tools: [{ name: 'find_book', description: 'Finds books.', command: 'cat', ...more }] },
})

const GOOD: Record<string, unknown> = {
  'the least': base,
  'every field': {
    $schema: 'https://agents.pinata.cloud/schemas/manifest.v1.json',
    version: 1,
    engine: 'openclaw',
    agent: { name: 'Tomte 🧝', description: 'Helps', vibe: null, emoji: '🧝' },
    model: 'anthropic/claude-sonnet-4-6',
    secrets: [
      { name: 'API_KEY', description: 'Of the shop', required: true, guideUrl: 'https://shop.example' },
      { name: '_X' },
    ],
    skills: [
      { name: 'a', cid: CID },
      { cid: 'QmYwAPJzv5CZsnA625s3Xf2nemtYgPpHdWEz79ojWKPbdG' },
      { clawhub_slug: '@owner/skill-name' },
      { name: 'b', clawhub_slug: 'self-improving-agent' },
    ],
    tasks: [
      {
        name: 'daily',
        schedule: { kind: 'cron', expr: '0 9 * * *', tz: 'Europe/Berlin', staggerMs: 0 },
        payload: { kind: 'agentTurn', message: 'go', timeoutSeconds: 60, model: 'a/b', thinking: 'low' },
        delivery: { mode: 'announce', channel: 'telegram', to: '1', bestEffort: true },
        sessionTarget: 'isolated',
        wakeMode: 'now',
      },
      {
        name: 'once',
        schedule: { kind: 'at', at: '2027-01-01T09:00:00Z' },
        payload: { kind: 'systemEvent', text: 'x' },
      },
      { name: 'often', enabled: false, schedule: { kind: 'every', everyMs: 60_000 }, prompt: 'look' },
      { name: 'older', prompt: 'Look around', schedule: '0 9 * * *', enabled: true },
    ],
    scripts: { build: 'npm ci', start: '' },
    routes: [
      { port: 3000, path: '/app', protected: false },
      { port: 1025, path: '/' },
      { port: 65_535, path: '/a_b/c-d' },
      { port: 3000, path: '/v0x' },
    ],
    mcp: {
      tools: [
        { name: 'find_book', description: 'Finds books.', command: 'node tools/find.mjs' },
        {
          name: 'lend',
          description: 'Lends a book.',
          input: {
            type: 'object',
            properties: {
              title: { type: 'string', description: 'Of the book', enum: ['Momo', 'Krabat'] },
              days: { type: 'integer', minimum: 1, maximum: 30 },
              tags: { type: 'array', items: { type: 'number', minimum: 0 } },
            },
            required: ['title'],
          },
          command: 'cat',
        },
      ],
    },
    channels: {
      telegram: { botToken: 'env:TG', dmPolicy: 'open', allowFrom: [1, 'a'], enabled: true },
      slack: { botToken: 'env:A', appToken: 'env:B' },
      discord: { botToken: 'env:C', enabled: false },
      whatsapp: { dmPolicy: 'pairing', allowFrom: [] },
    },
    template: {
      slug: 'useful-assistant',
      category: 'general',
      tags: ['a'],
      partnerName: 'P',
      partnerUrl: 'https://p.example/x',
      partnerLogoUrl: null,
      paid: { amount: 1.5, currency: 'USDC' },
    },
  },
  'the model as older ones have it': { ...base, model: { primary: 'openai/gpt' } },
  'comments anywhere': { ...base, _docs: { any: [1] }, agent: { name: 'a', _why: 7 } },
}

/** Variants of `base`, and their errors. */
const BAD: [what: unknown, errors: string[]][] = [
  [[], ['manifest.json: must be an object']],
  [{}, ['version must be 1', 'agent is required']],
  [{ ...base, version: '1' }, ['version must be 1']],
  [{ version: 1, agent: {} }, ['agent.name is required']],
  [{ version: 1, agent: { name: '' } }, ['agent.name: must not be empty']],
  [{ version: 1, agent: { name: 'x'.repeat(101) } }, ['agent.name: must have at most 100 characters']],
  [
    { version: 1, agent: { name: 'a<b' } },
    ['agent.name: must not be blank, nor contain control characters, line breaks or any of < > " ` \\'],
  ],
  [
    { version: 1, agent: { name: '\u200b\u2060' } },
    ['agent.name: must not be blank, nor contain control characters, line breaks or any of < > " ` \\'],
  ],
  [{ version: 1, agent: { name: 'a', descripton: 'x' } }, ['agent.descripton: there is no such field']],
  [{ ...base, 'a b\n': 1 }, ['["a b "]: there is no such field']],
  [JSON.stringify(base).replace('{', '{"__proto__":{},'), []],
  [{ ...base, constructor: 1 }, ['constructor: there is no such field']],
  [{ ...base, engine: 'other' }, ['engine: must be one of openclaw, hermes']],
  [{ ...base, model: 'gpt' }, ['model: must be like provider/model']],
  [{ ...base, model: {} }, ['model.primary is required']],
  [{ ...base, model: 1 }, ['model: must be a text or an object']],
  [{ ...base, skills: times(11, (i) => ({ name: `${i}`, cid: CID })) }, ['skills exceeds maximum of 10']],
  [{ ...base, skills: [{ name: 'a' }] }, ['skills[0]: needs cid or clawhub_slug']],
  [
    { ...base, skills: [{ cid: CID, clawhub_slug: 'a' }] },
    ['skills[0]: has cid and clawhub_slug, of which only one can be'],
  ],
  [{ ...base, skills: [{ cid: 'x' }] }, ['skills[0].cid: must be a CID']],
  [{ ...base, skills: [{ cid: CID }, { cid: CID }] }, ['skills[1].cid: is the same as in skills[0]']],
  [{ ...base, routes: times(11, (i) => ({ port: 3000, path: `/${i}` })) }, ['routes exceeds maximum of 10']],
  [
    {
      ...base,
      routes: [
        { port: 80, path: '/a' },
        { port: 18_789, path: '/b' },
        { port: 3000.5, path: 'c' },
        { port: '3000', path: '/v0/x' },
      ],
    },
    [
      'routes[0].port out of range: must be 1025 to 65535',
      'routes[1].port reserved',
      'routes[2].port: must be a whole number',
      'routes[2].path: must begin with /, have letters, digits, - and _ only, and not be below /v0, /chat or /config',
      'routes[3].port: must be a whole number',
      'routes[3].path: must begin with /, have letters, digits, - and _ only, and not be below /v0, /chat or /config',
    ],
  ],
  [
    {
      ...base,
      routes: [
        { port: 3000, path: '/a' },
        { port: 3001, path: '/a' },
      ],
    },
    ['routes[1].path: is the same as in routes[0]'],
  ],
  [{ ...base, routes: { '/app': 3000 } }, ['routes: must be a list']],
  [{ ...base, tasks: times(21, () => ({})) }, ['tasks exceeds maximum of 20']],
  [
    { ...base, tasks: [{}] },
    ['tasks[0].name is required', 'tasks[0].schedule is required', 'tasks[0]: needs payload or prompt'],
  ],
  [
    { ...base, tasks: [{ name: 'a', schedule: { kind: 'cron' }, prompt: 'p' }] },
    ['tasks[0].schedule.expr is required'],
  ],
  [
    { ...base, tasks: [{ name: 'a', schedule: { kind: 'every', everyMs: 5, expr: 'x' }, prompt: 'p' }] },
    [
      'tasks[0].schedule.everyMs out of range: must be 60000 to 315360000000',
      'tasks[0].schedule.expr: there is no such field',
    ],
  ],
  [
    { ...base, tasks: [{ name: 'a', schedule: 'daily', prompt: 'p' }] },
    ['tasks[0].schedule: must have 5 fields'],
  ],
  [
    { ...base, tasks: [{ name: 'a', schedule: '* * * * *', payload: { kind: 'agentTurn' } }] },
    ['tasks[0].payload: needs message or text'],
  ],
  [{ ...base, secrets: [{ name: 'lower' }] }, ['secrets[0].name: must be a name of a variable like MY_KEY']],
  [
    { ...base, channels: { telegram: { botToken: '123:AA' } } },
    ['channels.telegram.botToken: must be env:NAME, with the name of an attached secret'],
  ],
  [{ ...base, channels: { signal: {} } }, ['channels.signal: there is no such field']],
  [{ ...base, template: { tags: times(11, String) } }, ['template.tags exceeds maximum of 10']],
  [{ ...base, scripts: { build: 'a\0b' } }, ['scripts.build: must not contain NUL']],
  [withTool({ name: 'message' }), ['mcp.tools[0].name reserved']],
  [
    withTool({ name: 'find book', description: ' ', command: undefined }),
    [
      'mcp.tools[0].command is required',
      'mcp.tools[0].name: must be a name like find_book, of at most 64 characters',
      'mcp.tools[0].description: must have a visible character',
    ],
  ],
  [
    withTool({
      input: { type: 'object', properties: { title: { type: 'text' }, 'a b': {}, __proto__x: {} } },
    }),
    [
      'mcp.tools[0].input.properties.title.type: must be one of string, number, integer, boolean, array',
      'mcp.tools[0].input.properties["a b"]: must be a name like max_results',
      'mcp.tools[0].input.properties["a b"].type is required',
      'mcp.tools[0].input.properties.__proto__x: must be a name like max_results',
      'mcp.tools[0].input.properties.__proto__x.type is required',
    ],
  ],
  [
    withTool({
      input: { type: 'object', properties: { a: { type: 'string', pattern: '^(a+)+$', enum: [] } } },
    }),
    [
      'mcp.tools[0].input.properties.a.pattern: there is no such field',
      'mcp.tools[0].input.properties.a.enum: must not be empty',
    ],
  ],
  [
    withTool({
      input: {
        type: 'object',
        properties: Object.fromEntries(times(21, (i) => [`a${i}`, { type: 'string' }])),
      },
    }),
    ['mcp.tools[0].input.properties exceeds maximum of 20'],
  ],
  [
    withTool({
      input: {
        type: 'object',
        properties: { title: { type: 'string' } },
        required: ['title', 'name', 'title'],
      },
    }),
    [
      'mcp.tools[0].input.required[1]: is none of the properties',
      'mcp.tools[0].input.required[2]: is there twice',
    ],
  ],
  [
    { ...base, mcp: { tools: times(2, () => ({ name: 'a', description: 'b', command: 'c' })) } },
    ['mcp.tools[1].name: is the same as in mcp.tools[0]'],
  ],
]

describe('manifests', () => {
  for (const [what, manifest] of Object.entries(GOOD))
    it(`a manifest with ${what} is accepted unchanged`, () => {
      assert.deepEqual(checkManifest(JSON.stringify(manifest)), { manifest })
      assert.equal(isValid(manifest), true, JSON.stringify(isValid.errors))
    })
  it('a manifest may begin with a byte order mark', () =>
    assert.deepEqual(errorsOf(`\uFEFF${JSON.stringify(base)}`), []))
  for (const [manifest, errors] of BAD)
    it(`the check reports ${errors[0] ?? 'nothing'} for ${JSON.stringify(manifest).slice(0, 80)}`, () =>
      assert.deepEqual(errorsOf(manifest), errors))
  it('the error for a manifest that is not JSON gives the position', () => {
    assert.match(errorsOf('{"version": 1,\n}')[0] ?? '', /^manifest\.json is not valid JSON: .+/)
    assert.match(errorsOf('')[0] ?? '', /^manifest\.json is not valid JSON: /)
  })
  it('a manifest that is too large or too deep is refused cheaply', () => {
    assert.deepEqual(errorsOf(' '.repeat(1_048_577)), ['manifest.json is larger than 1048576 bytes'])
    assert.deepEqual(errorsOf('['.repeat(500_000) + ']'.repeat(500_000)), [
      'manifest.json: must be an object',
    ])
  })
  it('a manifest with many errors gets twenty of them, and the number of the others', () => {
    const errors = errorsOf({ ...base, ...Object.fromEntries(times(50, (i) => [`field${i}`, 1])) })
    assert.equal(errors.length, 21)
    assert.equal(errors[20], 'and 30 more')
  })
})

describe('published schema', () => {
  /** A valid manifest with one value replaced by anything, or removed. */
  const changed = fc
    .tuple(
      fc.constantFrom(...pathsOf(GOOD['every field'])),
      fc.oneof(fc.jsonValue(), fc.constantFrom(...HARD())),
    )
    .map(([path, value]) => replace(GOOD['every field'], path, value))

  it('the published schema and the check agree', () => {
    fc.assert(
      fc.property(
        fc.oneof({ weight: 9, arbitrary: changed }, { weight: 1, arbitrary: fc.jsonValue() }),
        (value) => {
          // Values that JSON cannot represent make no difference.
          const manifest = JSON.parse(JSON.stringify(value ?? null))
          const errors = errorsOf(manifest).filter((error) => !/is (the same as|none of|there)/.test(error))
          assert.equal(
            errors.length === 0,
            isValid(manifest),
            JSON.stringify([manifest, errors, isValid.errors]),
          )
        },
      ),
      { numRuns: 5000 },
    )
  })
})

/** Values at the limits of the rules. */
function HARD(): unknown[] {
  return [
    undefined,
    null,
    '',
    ' ',
    'a',
    '\0',
    'é'.repeat(100),
    '😀'.repeat(32),
    '😀'.repeat(33),
    'x'.repeat(201),
    0,
    1,
    1.5,
    1024,
    1025,
    18_789,
    65_535,
    65_536,
    59_999,
    60_000,
    true,
    [],
    {},
    { _a: 1 },
    { a: 1 },
    ['a'],
    [null],
    '/',
    '/v0',
    '/v0/',
    '/chat',
    '/a b',
    '//',
    '/a/',
    'env:A',
    'env:a',
    '* * * * *',
    '2027-01-01T00:00:00Z',
    { kind: 'at' },
    { kind: 'cron', expr: '* * * * *' },
    { kind: 'systemEvent', text: 'a', message: 'b' },
  ]
}

type Path = (string | number)[]

function pathsOf(value: unknown, path: Path = []): Path[] {
  if (typeof value !== 'object' || value === null) return [path]
  const inside = Object.entries(value).flatMap(([key, item]) => pathsOf(item, [...path, key]))
  return [path, [...path, Array.isArray(value) ? String(value.length) : 'extra'], ...inside]
}

function replace(value: unknown, [key, ...rest]: Path, by: unknown): unknown {
  if (key === undefined) return by
  const copy = structuredClone(value) as Record<string | number, unknown>
  copy[key] = replace(copy[key] ?? null, rest, by)
  if (copy[key] === undefined) delete copy[key]
  return copy
}
