import type { Row, Section } from '../rows.ts'

const bad: Row[] = [
  ['create: no name', 'openclaw/lifecycle > creating an agent > creating an agent is 400 for {}'],
  [
    'create: a name over 100 characters',
    'openclaw/lifecycle > an agent that comes up > an agent may have a name of 100 characters, and of no more',
  ],
  [
    'create: a name with banned characters',
    'openclaw/lifecycle > creating an agent > creating an agent is 400 for {"name":"a\\nb"}',
    'openclaw/lifecycle > creating an agent > creating an agent is 400 for {"name":"a<b"}',
    'openclaw/lifecycle > creating an agent > creating an agent is 400 for {"name":"a\\\\b"}',
  ],
  [
    'secrets: an empty name',
    'agents/secrets > a malformed secret is 400 > a malformed secret is 400 for an empty name',
    'agents/secrets > a malformed secret is 400 > a malformed secret is 400 for nothing',
  ],
  [
    'secrets: an empty value',
    'agents/secrets > a malformed secret is 400 > a malformed secret is 400 for an empty value',
    'agents/secrets > a malformed secret is 400 > a malformed secret is 400 for no value',
  ],
  [
    'skills: more than 10 attached',
    'agents/attached-skills > attaching skills > attaching skills takes ten, and no more',
    'agents/attached-skills > attaching skills > attaching skills takes ten also when all come at once',
  ],
  [
    'console: an empty command',
    'openclaw/console > a command > a command is refused when it is an empty text',
    'openclaw/console > a command > a command is refused when it is nothing',
    'openclaw/console > a command > a command is refused when it is spaces',
  ],
  [
    'sync: no storage is configured',
    'agents/own-settings.processes > a web process > a web process without a network for snapshots > a web process without a network for snapshots answers 400 to a sync: Storage not configured',
  ],
  [
    'config/validate: no valid JSON',
    'openclaw/config > validating a config > validating a config that is no JSON object is 400',
  ],
  [
    'domains: both a subdomain and a custom domain',
    'agents/domains > a domain is 400 > a domain is 400 with a name, a port or a protection that it cannot have',
  ],
  [
    'domains: a banned name',
    'agents/domains > a domain is 400 > a domain is 400 with a name, a port or a protection that it cannot have',
  ],
  [
    'domains: more than 5',
    'agents/domains > a domain is 400 > the sixth domain of an agent is 400, also where twenty are added at once',
  ],
  [
    'reset: no `snapshotCid`, or a malformed one',
    'openclaw/snapshots > a reset > a reset is 400 for {}',
    'openclaw/snapshots > a reset > a reset is 400 for {"snapshotCid":"latest"}',
  ],
  [
    'channels: no token where there was none before',
    'openclaw/channels > channels > channels are refused: telegram with {}',
    'openclaw/channels > channels > channels are refused: slack with {"botToken":"xoxb-1-secret-of-slack-bot"}',
    'openclaw/channels > channels > channels are refused: discord with {}',
  ],
  [
    'channels: an unsupported channel',
    'openclaw/channels > channels > channels are refused: signal with {"botToken":"a"}',
    'openclaw/channels > channels > channels that are not there cannot be removed',
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
    'auth > a request without a valid key > a request without a valid key is 401 on every route that needs one',
  ],
  [
    'an expired or revoked key',
    'auth > a key > a key ends when it expires',
    'auth > a key > a key ends with its revocation over HTTP, from the next request on',
    'agents/access > the routes of an agent > the routes of an agent are 401 for every stranger, and change nothing',
  ],
  [
    'a rotated gateway token',
    'agents/access > the routes of an agent > the routes of an agent are 401 for every stranger, and change nothing',
    'agents/tokens > rotating the gateway token > rotating the gateway token ends the old one, and the platform tokens minted by it, at once',
  ],
  [
    'a key of another workspace',
    'agents/access > the routes of an agent > the routes of an agent are 401 for every stranger, and change nothing',
  ],
]

const forbidden: Row[] = [
  [
    'create: the limit of agents is reached',
    'openclaw/lifecycle > creating an agent > creating an agent stops at the limit of the plan, however many ask at once',
  ],
  [
    'channels on the free plan',
    'openclaw/channels > channels > channels are no part of the free plan',
    'openclaw/lifecycle > creating an agent > creating an agent is 403 with channels on the free plan',
  ],
  [
    'custom domains on the free plan',
    'agents/domains > a custom domain > a custom domain is 403 on the free plan, where a subdomain is not',
  ],
  [
    'no permission in the workspace',
    'auth > a role > the role viewer reads, and is denied every write',
    'agents/access > the routes of an agent > the routes of an agent are 403 for keys and users that may not, and change nothing',
  ],
]

const missing: Row[] = [
  [
    'a wrong agentId',
    'agents/access > the routes of an agent > the routes of an agent are 404 where there is no such agent',
  ],
  [
    'reset: a CID that is not in the history of the agent',
    'openclaw/snapshots > a reset > a reset is 404 for what is not in the history of this agent',
  ],
  [
    'skills: not in the library',
    'agents/attached-skills > attaching skills > attaching skills takes all or none: 404 for what is not in the library',
  ],
  [
    'templates: a slug or an id that is not there, or archived',
    'openclaw/template-agents > creating an agent from a template > creating an agent from a template is 404 for one that is not there, is archived, or is of another workspace',
    'agents/templates-changed > archiving a template > archiving a template hides it, frees its slug, and releases its content',
  ],
  [
    'domains: an id that the agent does not have',
    'agents/domains > a domain that is there > a domain is 404 where it is not on this agent',
  ],
  ['the issues endpoints', 'agents/issues > issues > issues are 404 for every account'],
]

const conflict: Row[] = [
  [
    'a second secret of a name',
    'agents/secrets > a second secret of the same name > a second secret of the same name is 409',
  ],
  [
    'two credentials of one provider attached',
    'agents/attachments > two credentials of one provider > two credentials of one provider (ANTHROPIC_API_KEY, ANTHROPIC_OAUTH_TOKEN) are 409, one after the other and together',
    'openclaw/lifecycle > creating an agent > creating an agent is 409 for two credentials of one provider',
  ],
  [
    'a custom domain that is registered and verified',
    'agents/domains > a custom domain > a custom domain may be claimed by many, and is had by who proves it: 409 for all others from then on',
    'agents/domains > a custom domain > a custom domain is had by one of two tenants who prove it at once',
  ],
  [
    'a subdomain that another tenant has',
    'agents/domains > a subdomain > a subdomain is 409 when another agent has it, of this tenant or of another',
  ],
  [
    'deleting a secret that an agent has',
    'agents/secrets > a secret that an agent has > a secret that an agent has cannot be deleted: 409 that names the agents',
  ],
  [
    'a token of a bot that another agent has',
    'openclaw/channels > channels > channels refuse the token of another agent, without its name [report: bot tokens]',
  ],
  [
    'updating a skill whose versions conflict',
    'agents/attached-skills > updates of skills > updates of skills conflict where another version is attached than the caller thinks',
    'openclaw/live-skills > a skill that the agent has changed > a skill that the agent has changed is not lost by an update, which says so; its owner decides',
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
        'openclaw/files > uploading a file > uploading a file refuses a body that is too large while it is sent, and keeps the connection',
      ],
    ],
  },
  {
    title: '7.1 Status 500',
    rows: [
      [
        'a failure of the server: `error` is the message of 7.2, `Error-Detail` says the cause',
        'openclaw/engine-failures > an engine that hangs > an engine that hangs fails listing devices: CLI error',
        'openclaw/late-engine > an agent that does not come up in time > an agent that does not come up in time is 500 with the agent, which is listed, and can be restarted',
      ],
    ],
  },
  {
    title: '7.1 Status 503',
    rows: [
      [
        'secrets: the server has no key to encrypt them',
        'agents/own-settings.processes > a web process > a web process without a SECRETS_KEY > a web process without a SECRETS_KEY answers 503 where a value has to be encrypted, after authentication and validation',
      ],
      [
        'snapshots: IPFS cannot be reached',
        'agents/snapshot-refusals > a sync or a reset that could not reach IPFS > a sync or a reset that could not reach IPFS is 503, to be tried again',
      ],
    ],
  },
]
