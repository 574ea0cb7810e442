/** Values that Berth refuses although their JSON Schema allows them: by format, by name, and by route. */
const repeated = (count: number, text = 'x') => text.repeat(count)
/** `JSON.parse`, because `__proto__` in a literal sets the prototype. */
const PROTO = JSON.parse('{"__proto__": "a"}')
const BRANDS = ['myBERTHshop', 'pinata1']

/** In fields and parameters of a format. */
export const BY_FORMAT: Record<string, string[]> = {
  'agent-name': [
    ...['', ' ', repeated(101), 'a\ud800b', '\u200b'],
    ...['\n', '\r', '\0', '\u001b', '\u0085', '\u2028', '\u202e', '<', '>', '"', '`', '\\'].map(
      (c) => `a${c}b`,
    ),
  ],
  base64: ['Y', 'YQ', 'YQ=', 'YR==', 'Y Q==', '_-8=', 'data:text/plain;base64,YQ=='],
  cid: ['', 'x', 'bafy', '/ipfs/bafkqaaa'],
  cids: ['x', 'bafkqaaa,x', repeated(11, 'bafkqaaa,').slice(0, -1)],
  cursor: ['x', 'u:'],
  date: ['x', '2026-02-30', '0000-01-01', '2026-01-01T00:00:00Z'],
  'date-time': ['x', 'yesterday', '2026-13-01T00:00:00Z', '2026-02-30T00:00:00Z', '2026-01-01'],
  'domain-name': [
    ...['', 'localhost', 'a.localhost', '-a.example.com', 'a..example.com', 'a b.example.com', '127.0.0.1'],
    ...['https://a.example.test', 'berth.example.test', 'my-pinata.example.test', 'a.gateway.localhost'],
  ],
  'event-types': ['', 'file', 'file.*,file.burnt'],
  'file-name': ['', ' ', '.', '..', '../x', '/etc/x', 'a\\b', 'a\0b', 'a\nb', repeated(128, 'ü')],
  'gateway-name': [
    ...['', 'ab', 'a b c', 'abc\0', '-ab', 'abc.gateway.localhost', repeated(64, 'a'), 'api', 'my-Berth'],
  ],
  'git-ref': ['', '--upload-pack=x', 'a..b', 'a b', '+a:b', 'a\nb', 'x.lock', 'a@{1}'],
  'host-node': ['', 'node', '/ip4/1.2.3.4/tcp/4001', '/carrier/pigeon/p2p/x', 'https://node.example'],
  'json-object': ['', '7', '[]', '{', repeated(33, '{"a":') + 1 + repeated(33, '}')],
  'json-pairs': ['{', '"a"', '{"a":1}', '{"__proto__":"a"}'],
  'page-token': ['x', 'AAAA'],
  'egress-path': ['', 'a', '/a//b', '/a/../b', '/*/a'],
  'egress-rule': ['https://a.example', 'a.example/x', '*'],
  'path-prefix': [
    ...['', 'a', '/a b', '/a.b', '/ä', '//', '/a//b', '/a/../b', '/%61', '/a?b', `/${repeated(200, 'a')}`],
    ...['/v0', '/chat', '/config', '/v0/x', '/chat/', '/config/a'],
  ],
  'private-file': ['', 'x', 'https://x.example/files'],
  'secret-host': ['', 'localhost', '*.com', '192.0.2.1', 'https://a.example', 'a.example:443', 'a.example/x'],
  skill: ['', 'a b', '@a', '@a/b/c', '../x'],
  subdomain: ['', 'a.b', '-a', repeated(64, 'a'), 'www', 'x1234567', ...BRANDS],
  uuid: ['', 'x', '0191f0f0-0000-7000-8000'],
  'webhook-url': [
    ...['', 'hooks.invalid', 'ftp://hooks.invalid/', 'http://hooks.invalid/', 'https://hooks.invalid/\0'],
    ...[`https://hooks.invalid/${repeated(2048)}`, 'https://hooks.invalid/#part', 'https://hooks.invalid:0/'],
    ...[
      'https://user@hooks.invalid/',
      'https://:word@hooks.invalid/',
      'https://127.0.0.1/',
      'https://127.1:8443/',
    ],
    ...['https://169.254.169.254/', 'https://[::1]/', 'https://[::ffff:10.0.0.1]/'],
  ],
}

const PAIRS = [{ '': 'a' }, { [repeated(256, 'k')]: 'a' }, { 'a\0': 'b' }, { '\ud800': 'b' }, PROTO]
const ELEVEN = Object.fromEntries(Array.from({ length: 11 }, (_, i) => [`k${i}`, '']))

/** In fields of a name, on every route. */
export const BY_NAME: Record<string, unknown[]> = { keyvalues: PAIRS, meta: PAIRS }

const TURN = { kind: 'agentTurn' }
const ROUTE = { port: 3000, pathPrefix: '/good' }
const TEMPLATE = { agentId: 'x0000001', category: 'x', description: 'x' }
const gitUrl = 'https://a.example/b'
const REPOSITORIES = [
  ...[{ gitUrl, agentId: 'x' }, { branch: 'main' }, { gitUrl: 7 }, { gitUrl, branch: 'a', ref: 'b' }],
  ...['../x', 'a/../b', './a', 'a//b'].map((path) => ({ gitUrl, path })),
  ...['--upload-pack=x', 'a..b', 'a b', '+a:b', 'a\nb', 'x.lock', 'a@{1}'].map((branch) => ({
    gitUrl,
    branch,
  })),
  ...[
    'http://127.0.0.1:1/a',
    'https://127.0.0.1/a',
    'file:///etc',
    'ext::sh -c true',
    'https://u:p@a.example/b',
  ].map((gitUrl) => ({ gitUrl })),
]
const DOMAIN = { subdomain: 'a1', targetPort: 3000 }

/** In a field or a query of one route, named by the route's id and the field; `body` is the whole body. */
export const BY_ROUTE: Record<string, unknown[]> = {
  'streamEvents resource': ['agent', 'agent:'],
  'streamEvents after': ['-1', '9999999999999999999'],
  'pinByCid name': ['\ud800', 'a\udfffb'],
  'pinByCid keyvalues': [ELEVEN],
  'psaAddPin meta': [ELEVEN],
  'psaReplacePin meta': [ELEVEN],
  'listPinByCid pageToken': ['MDE5MWYwZjA=', Buffer.from("' OR true --").toString('base64')],
  'listPinByCid status': ['pinned', "'"],
  'psaListPins status': ['pinned,expired', ''],
  'getOperation wait': ['9999999'],
  'updateFile expires_at': [0, 1.5, 1_000_000_000, 99_999_999_999_999],
  'signUpload date': [1_800_000_000_000],
  'signUpload allow_mime_types': [['png']],
  'addSignature signature': [
    '0x',
    `0x${repeated(127, 'a')}`,
    `0x${repeated(2049, 'aa')}`,
    `0x${repeated(128, 'g')}`,
  ],
  'addSignature address': ['0x', `0x${repeated(39, 'a')}`, `0x${repeated(41, 'a')}`, repeated(42, 'a')],
  'createKey keyName': ['  '],
  'createKey permissions': [
    ...[{}, { admin: false }, { resources: ['org:all'] }, { resources: Array(100).fill(0) }],
    ...[{ endpoints: { data: { unknown: true } } }, { endpoints: { data: { constructor: true } } }],
  ],
  'topAnalytics http_status_code': ['999', '99'],
  'createSecret name': [
    ...['openai_key', '1A', 'A-B', 'A=B', 'A\n', 'A\0', repeated(129, 'A')],
    ...['PATH', 'NODE_OPTIONS', 'LD_PRELOAD', 'OPENCLAW_STATE_DIR', 'AGENT_ID', 'HTTPS_PROXY'],
  ],
  'createSecret value': ['x\0y', '\ud800', repeated(16_385, 'é')],
  'addSkill name': ['a b', '../x', 'a/b', '@a/b/c', repeated(65), '@berth/mine'],
  'addSkill envVars': [[{ name: 'A B' }]],
  'addSkillVersion version': ['1', '1.0', 'v1.0.0', '01.0.0', '1.0.0-', 'latest'],
  'createAgent channels': [{ telegram: { botToken: 'x' } }, { signal: {} }],
  'addDomain body': [
    ...[
      {},
      { ...DOMAIN, customDomain: 'a.example.test' },
      { ...DOMAIN, subdomain: null, customDomain: null },
    ],
    ...(BY_FORMAT.subdomain?.map((subdomain) => ({ ...DOMAIN, subdomain })) ?? []),
    ...(BY_FORMAT['domain-name']?.map((customDomain) => ({ customDomain, targetPort: 3000 })) ?? []),
  ],
  'addDomain targetPort': [1024, 3000.5, 65_536, 18_789, 7700, '3000'],
  'updateDomain subdomain': ['other'],
  'updateDomain customDomain': ['a.example.test'],
  'setPortForwarding mappings': [
    ...[1024, 65_536, 18_789, 7700, 3000.5, '3000'].map((port) => [ROUTE, { port, pathPrefix: '/a' }]),
    ...['/good', '/good/'].map((pathPrefix) => [ROUTE, { port: 3001, pathPrefix }]),
    Array.from({ length: 11 }, (_, i) => ({ port: 3000, pathPrefix: `/a${i}` })),
  ],
  'createTask schedule': [
    ...[{ kind: 'sometimes' }, { kind: 'at', at: 'tomorrow' }, { kind: 'every', everyMs: 59_999 }],
    ...[
      { kind: 'cron', expr: '0 0 9 * * *' },
      { kind: 'cron', expr: '0 9 * * *', tz: 'Mars/Olympus' },
    ],
  ],
  'createTask payload': [TURN, { ...TURN, text: 'a', message: 'b' }, { kind: 'dance', text: 'a' }],
  'createTask delivery': [{ mode: 'pigeon' }],
  'updateTask schedule': [{ kind: 'every', everyMs: 1 }],
  'createTemplate body': [
    ...[{}, { ...TEMPLATE, slug: 'Not A Slug' }, { ...TEMPLATE, slugOverride: '-x' }, ...REPOSITORIES],
    { ...TEMPLATE, authorUrl: 'javascript:alert(1)' },
  ],
  'validateTemplate body': REPOSITORIES,
}
