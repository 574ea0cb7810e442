import type { Row, Section } from '../rows.ts'

const bad: Row[] = [
  ['create: no name', 'openclaw/lifecycle > creating an agent > creating an agent returns 400 for {}'],
  [
    'create: a name over 100 characters',
    'openclaw/lifecycle > a starting agent > an agent may have a name of 100 characters at most',
  ],
  [
    'create: a name with banned characters',
    'openclaw/lifecycle > creating an agent > creating an agent returns 400 for {"name":"a\\nb"}',
    'openclaw/lifecycle > creating an agent > creating an agent returns 400 for {"name":"a<b"}',
    'openclaw/lifecycle > creating an agent > creating an agent returns 400 for {"name":"a\\\\b"}',
  ],
  [
    'secrets: an empty name',
    'agents/secrets > malformed secrets > a malformed secret returns 400 for an empty name',
    'agents/secrets > malformed secrets > a malformed secret returns 400 for nothing',
  ],
  [
    'secrets: an empty value',
    'agents/secrets > malformed secrets > a malformed secret returns 400 for an empty value',
    'agents/secrets > malformed secrets > a malformed secret returns 400 for no value',
  ],
  [
    'skills: more than 10 attached',
    'agents/attached-skills > attaching skills > attaching skills is limited to ten skills',
    'agents/attached-skills > attaching skills > attaching skills concurrently is limited to ten skills',
  ],
  [
    'console: an empty command',
    'openclaw/console > a command > a command is refused if it is an empty string',
    'openclaw/console > a command > a command is refused if it is nothing',
    'openclaw/console > a command > a command is refused if it is spaces',
  ],
  [
    'sync: no storage is configured',
    'agents/own-settings.processes > a web process > a web process without a snapshot network > a web process without a snapshot network rejects a sync: 400 Storage not configured',
  ],
  [
    'config/validate: invalid JSON',
    'openclaw/config > validating a config > validating a config that is not a JSON object returns 400',
  ],
  [
    'domains: both a subdomain and a custom domain',
    'agents/domains > invalid domains > a domain returns 400 with an invalid name, port or protection',
  ],
  [
    'domains: a banned name',
    'agents/domains > invalid domains > a domain returns 400 with an invalid name, port or protection',
  ],
  [
    'domains: more than 5',
    'agents/domains > invalid domains > the sixth domain of an agent returns 400, even if twenty are added at once',
  ],
  [
    'reset: no `snapshotCid`, or a malformed one',
    'openclaw/snapshots > resetting an agent > resetting an agent returns 400 for {}',
    'openclaw/snapshots > resetting an agent > resetting an agent returns 400 for {"snapshotCid":"latest"}',
  ],
  [
    'channels: no token, and none configured before',
    'openclaw/channels > channels > a channel is refused: telegram with {}',
    'openclaw/channels > channels > a channel is refused: slack with {"botToken":"xoxb-1-secret-of-slack-bot"}',
    'openclaw/channels > channels > a channel is refused: discord with {}',
  ],
  [
    'channels: an unsupported channel',
    'openclaw/channels > channels > a channel is refused: signal with {"botToken":"a"}',
    'openclaw/channels > channels > a channel that is not configured cannot be removed',
  ],
  [
    'files/upload: an empty file name',
    'openclaw/files > uploading a file > uploading a file refuses a name that is empty',
    'openclaw/files > uploading a file > uploading a file refuses a name that is missing',
  ],
  [
    'files/upload: malformed base64',
    'openclaw/files > uploading a file > uploading a file refuses "YQ" as content',
    'openclaw/files > uploading a file > uploading a file refuses "data:text/plain;base64,YQ==" as content',
  ],
]

const unauthorized: Row[] = [
  [
    'no Authorization header',
    'auth > a request without a valid key > a request without a valid key returns 401 on every route that needs one',
  ],
  [
    'an expired or revoked key',
    'auth > a key > a key stops working when it expires',
    'auth > a key > a key revoked over HTTP fails on the next request',
    'agents/access > agent routes > agent routes return 401 for every stranger, and change nothing',
  ],
  [
    'a rotated gateway token',
    'agents/access > agent routes > agent routes return 401 for every stranger, and change nothing',
    'agents/tokens > rotating the gateway token > rotating the gateway token revokes the old one and its platform tokens at once',
  ],
  [
    'a key of another workspace',
    'agents/access > agent routes > agent routes return 401 for every stranger, and change nothing',
  ],
]

const forbidden: Row[] = [
  [
    'create: the agent limit is reached',
    "openclaw/lifecycle > creating an agent > creating agents concurrently stops at the plan's limit",
  ],
  [
    'channels on the free plan',
    'openclaw/channels > channels > channels are not part of the free plan',
    'openclaw/lifecycle > creating an agent > creating an agent with channels on the free plan returns 403',
  ],
  [
    'custom domains on the free plan',
    'agents/domains > custom domains > a custom domain returns 403 on the free plan, but a subdomain does not',
  ],
  [
    'no permission in the workspace',
    'who-may.processes > access by credential > the access table matches docs/security.md',
  ],
]

const missing: Row[] = [
  ['an unknown agentId', 'agents/access > agent routes > agent routes return 404 for an unknown agent'],
  [
    "reset: a CID outside the agent's history",
    'openclaw/snapshots > resetting an agent > resetting an agent returns 404 for a snapshot outside its history',
  ],
  [
    'skills: not in the library',
    'agents/attached-skills > attaching skills > attaching skills is all or nothing: 404 if one is not in the library',
  ],
  [
    'templates: an unknown or archived slug or id',
    'openclaw/template-agents > creating an agent from a template > an agent from a missing, archived or foreign template returns 404',
    'agents/templates-changed > archiving a template > archiving a template hides it, frees its slug, and releases its content',
  ],
  [
    'domains: an id that the agent does not have',
    'foreign-ids > ids > an id of another workspace, agent or network returns 404 on every route, and changes nothing',
  ],
  ['the issues endpoints', 'agents/issues > issues > issues return 404 for every account'],
]

const conflict: Row[] = [
  [
    'a second secret with the same name',
    'agents/secrets > duplicate secret names > a second secret with the same name returns 409',
  ],
  [
    'attaching two credentials of one provider',
    'agents/attachments > two credentials of one provider > two credentials of one provider (ANTHROPIC_API_KEY, ANTHROPIC_OAUTH_TOKEN) return 409, in sequence or together',
    'openclaw/lifecycle > creating an agent > creating an agent with two credentials of one provider returns 409',
  ],
  [
    'a custom domain that is registered and verified',
    'agents/domains > custom domains > many may claim a custom domain, and the first to prove it gets it: 409 for all others',
    'agents/domains > custom domains > concurrent proofs of a custom domain: one of two tenants gets it',
  ],
  [
    'a subdomain that another tenant has',
    'agents/domains > subdomains > a subdomain returns 409 if any agent of any tenant has it',
  ],
  [
    'deleting an attached secret',
    'agents/secrets > attached secrets > an attached secret cannot be deleted: 409 with the names of the agents',
  ],
  [
    'a bot token that another agent has',
    "openclaw/channels > channels > a channel rejects another agent's token, without naming the agent [report: bot tokens]",
  ],
  [
    'a skill update whose versions conflict',
    'agents/attached-skills > skill updates > a skill update returns 409 if another version is attached than expected',
    "openclaw/live-skills > skills that the agent changed > an update does not overwrite the agent's changes: its owner decides",
  ],
]

/** Contract 7.1. */
export const statuses: Section[] = [
  { title: '7.1 Status 400', rows: bad },
  { title: '7.1 Status 401', rows: unauthorized },
  { title: '7.1 Status 403', rows: forbidden },
  { title: '7.1 Status 404', rows: missing },
  { title: '7.1 Status 409', rows: conflict },
  {
    title: '7.1 Status 413',
    rows: [
      [
        'files/upload: a body over the limit',
        'openclaw/files > uploading a file > an upload that is too large is refused while it is sent, and keeps the connection',
      ],
    ],
  },
  {
    title: '7.1 Status 500',
    rows: [
      [
        'a server failure: `error` is the message of 7.2, `Error-Detail` names the cause',
        'openclaw/engine-failures > an engine that hangs > an engine that hangs fails listing devices: CLI error',
        'openclaw/late-engine > an agent that does not start in time > an agent that does not start in time returns 500, is listed, and can be restarted',
      ],
    ],
  },
  {
    title: '7.1 Status 503',
    rows: [
      [
        'secrets: the server has no key to encrypt them',
        'agents/own-settings.processes > a web process > a web process without a SECRETS_KEY > a web process without a SECRETS_KEY returns 503 after authentication and validation',
      ],
      [
        'snapshots: IPFS cannot be reached',
        'openclaw/snapshots > a sync or reset that cannot reach IPFS > a sync or reset that cannot reach IPFS returns 503 and may be retried',
      ],
    ],
  },
]
