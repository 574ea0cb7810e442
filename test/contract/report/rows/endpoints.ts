import type { Row, Section } from '../rows.ts'

const PIN = 'pin-by-cid > a pin > a pin returns exactly the fields of the contract'
const LEAST = 'pin-by-cid > a pin > a pin needs only the CID'
const PIN_HEADERS = 'headers > the headers of an accepted pin match the contract'

const pinByCid: Row[] = [
  ['`POST /v3/files/public/pin_by_cid` returns 200 with `{data: <pin record>}`', PIN],
  [
    'it needs the scope `org:files:write`',
    'auth > the order of checks > the scope is checked after the key',
    'who-may.processes > access by credential > the access table matches docs/security.md',
  ],
  [
    '`cid` is required',
    LEAST,
    'pin-by-cid > a CID > a CID may not be undefined',
    'pin-by-cid > a CID > a CID may not be a word',
  ],
  [
    '`name` is an optional string',
    PIN,
    LEAST,
    'malformed > a malformed request > a malformed request returns 400 with a message that names the field, on every route',
  ],
  [
    '`group_id` is optional',
    PIN,
    LEAST,
    'pin-by-cid > the group of a pin > the group of a pin must belong to the workspace',
  ],
  [
    '`keyvalues` are optional, and their values are strings',
    PIN,
    LEAST,
    'malformed > a malformed request > a malformed request returns 400 with a message that names the field, on every route',
  ],
  [
    '`host_nodes` are optional node ids, as printed by `ipfs id`',
    PIN,
    LEAST,
    'pin-by-cid > the host nodes of a pin > the host nodes of a pin may be up to a hundred peer ids and multiaddrs',
  ],
  ['the response is `application/json; charset=utf-8`', PIN_HEADERS],
  ['it has `Date`, `Content-Length` and `Connection`', PIN_HEADERS],
  [
    'it has `X-Request-Id`',
    PIN_HEADERS,
    'headers > X-Request-Id > X-Request-Id differs for each request, whatever the client sends',
  ],
  ['it has `Strict-Transport-Security`', PIN_HEADERS],
]

const swapHistory: Row[] = [
  [
    '`GET /v3/files/{network}/swap/{cid}` returns 200 with `{data: [<swap entry>, …]}`',
    'swaps > a swap > a swap returns its entry, which the history lists',
    'swaps > the swap history > the swap history lists fifty consecutive swaps in order, newest first',
  ],
  [
    'it needs the scope `org:files:read`',
    "swaps > the swap history > any workspace's key that may read files can read the swap history",
  ],
  [
    '`network` is public or private',
    'swaps-served > swaps of private files > only its own workspace can read the history of a private swap',
    'swaps > the swap history > the swap history returns 404 for a CID that was never swapped, and on the other network',
    'swaps > a swap > a swap returns 400 for other/swap/bafkqaalb {"swap_cid":"bafkqaalb"}',
  ],
  [
    '`cid` is the original one',
    'swaps > a swap > a swap accepts any spelling of its CIDs, and shows the new one as it was spelled',
    'swaps > the swap history > the swap history returns 400 without exactly one gateway, and for an invalid CID',
  ],
  [
    'the query names the gateway’s domain (`domain`, required)',
    'swaps > the swap history > the swap history accepts any spelling of its gateway',
    'swaps > the swap history > the swap history returns 400 without exactly one gateway, and for an invalid CID',
    'swaps > the swap history > the swap history returns 404 at a gateway without the plugin',
  ],
]

const agents: Row[] = [
  [
    '`POST /v0/agents` with `name`',
    'openclaw/lifecycle > an agent > an agent has exactly these fields',
    'openclaw/lifecycle > creating an agent > creating an agent returns 400 for {}',
    "openclaw/lifecycle > creating an agent > creating agents concurrently stops at the plan's limit",
  ],
  ['`GET /v0/agents`', 'openclaw/lifecycle > an agent > an agent is listed, and returned with its process'],
  [
    '`POST /v0/secrets` with `name` and `value`, neither empty',
    'agents/secrets > a secret > a secret is created with exactly these fields, and listed with its agents',
    'agents/secrets > malformed secrets > a malformed secret returns 400 for an empty name',
    'agents/secrets > malformed secrets > a malformed secret returns 400 for an empty value',
  ],
  [
    '`POST /v0/agents/{agentId}/secrets`',
    'agents/attachments > attaching secrets > an attached secret reaches the agent at its next restart',
    'agents/attachments > two credentials of one provider > two credentials of one provider (GEMINI_API_KEY, GOOGLE_API_KEY) return 409, in sequence or together',
    'openclaw/live-secrets > a running agent > a running agent gets a secret at its next restart, and the API shows it',
  ],
  [
    '`POST /v0/agents/{agentId}/skills`, at most 10',
    'agents/attached-skills > attaching skills > attaching skills adds skills from the library',
    'agents/attached-skills > attaching skills > attaching skills is limited to ten skills',
    'openclaw/live-skills > skills in a running agent > a skill is added to a running agent, and removed from it, without a restart',
    'openclaw/engine-skills > the engine of a running agent > the engine of a running agent finds added and removed skills without a restart',
  ],
  [
    '`POST /v0/agents/{agentId}/skills/{skillId}/update` resolves a version conflict',
    'agents/attached-skills > skill updates > a skill update installs the newest version, or the requested one',
    'agents/attached-skills > skill updates > a skill update returns 409 if another version is attached than expected',
    "openclaw/live-skills > skills that the agent changed > an update does not overwrite the agent's changes: its owner decides",
  ],
  [
    '`POST /v0/clawhub/{slug}/install` installs a skill into the library',
    'agents/clawhub > installing a hub skill > installing a hub skill puts it on public IPFS and into the library, once',
    'agents/clawhub > hub skills > a hub skill returns 404 if it does not exist',
  ],
  [
    '`GET /v0/templates`',
    'agents/templates > templates that ship with Berth > templates that ship with Berth are listed in every workspace, and without a key',
    'agents/templates-changed > the list of templates > the list of templates has the shipped ones first, then the workspace’s own',
  ],
  [
    '`GET /v0/agents/{agentId}/snapshots`',
    'openclaw/snapshots > the history of an agent > the history of a new agent is empty',
    'openclaw/snapshots > the history of an agent > the history of an agent has ten snapshots per page, newest first',
  ],
  [
    '`POST /v0/agents/{agentId}/snapshots/sync` pins a snapshot of the workspace',
    'openclaw/snapshots > an agent’s workspace > an agent’s workspace is saved',
    'openclaw/snapshots > an agent’s workspace > an unchanged workspace is not saved twice',
  ],
  [
    '`POST /v0/agents/{agentId}/snapshots/reset` with `snapshotCid` from the agent’s own history',
    'openclaw/snapshots > an agent’s workspace > an agent’s workspace is reset to a snapshot, in any spelling of its CID',
    'openclaw/snapshots > resetting an agent > resetting an agent returns 404 for a snapshot outside its history',
  ],
  [
    '`POST /v0/agents/{agentId}/console/exec` with a non-empty `command`, and with `cwd`, a folder',
    'openclaw/console > a command > a command returns its output and its exit code',
    "openclaw/console > a command > a command runs in the agent's root by default, or in the given folder",
    'openclaw/console > a command > a command is refused if it is an empty string',
    'openclaw/console > a command > a command is refused if its folder does not exist',
  ],
  [
    '`POST /v0/agents/{agentId}/config/validate` with `config`, valid JSON',
    'openclaw/config > validating a config > validating a config succeeds for the current one, with and without a body',
    "openclaw/config > validating a config > validating a config returns the engine's errors, and writes nothing",
    'openclaw/config > validating a config > validating a config that is not a JSON object returns 400',
  ],
  [
    '`GET /v0/agents/{agentId}/config`',
    'openclaw/config > the config > the config of an agent is returned as text, with its secrets redacted',
  ],
  [
    '`PUT /v0/agents/{agentId}/config` with `config`',
    'openclaw/config > the config > the config of an agent may be written as text or as an object',
    'openclaw/config > the config > the config of an agent survives a restart',
  ],
  [
    '`POST /v0/agents/{agentId}/domains` with either `subdomain` or `customDomain`, at most 5',
    'agents/domains > subdomains > a subdomain is active at once',
    'agents/domains > custom domains > a custom domain is pending until its TXT record is found',
    'agents/domains > invalid domains > a domain returns 400 with an invalid name, port or protection',
    'agents/domains > invalid domains > the sixth domain of an agent returns 400, even if twenty are added at once',
  ],
  [
    '`GET /v0/agents/{agentId}/domains`',
    'agents/domains > subdomains > a subdomain is active at once',
    'agents/domains > custom domains > a custom domain is pending until its TXT record is found',
  ],
  [
    '`POST /v0/agents/{agentId}/channels/{channel}` with `botToken`, and for slack `appToken`; four channels',
    'openclaw/channels > channels > channels show only the end of their tokens, which are stored encrypted',
    'openclaw/channels > channels > a channel is refused: slack with {"botToken":"xoxb-1-secret-of-slack-bot"}',
    'openclaw/channels > channels of a running agent > a channel of a running agent reaches its engine, and a request without wait returns 202',
  ],
  [
    '`DELETE /v0/agents/{agentId}/channels/{channel}`',
    'openclaw/channels > channels of a running agent > a removed channel disappears from a running agent',
    'openclaw/channels > channels > a channel that is not configured cannot be removed',
  ],
  [
    '`POST /v0/agents/{agentId}/files/upload` with a non-empty `filename`, and with `contentBase64`, not a data URL',
    "openclaw/files > uploading a file > uploading a file stores it in the workspace's uploads folder",
    'openclaw/files > uploading a file > uploading a file refuses a name that is empty',
    'openclaw/files > uploading a file > uploading a file refuses "data:text/plain;base64,YQ==" as content',
  ],
  [
    '`GET /v0/agents/{agentId}/devices`',
    'openclaw/devices > devices > a device waits until it is approved, and is then paired',
  ],
  [
    '`POST /v0/agents/{agentId}/restart` with `version`, 400 for an unknown one',
    'openclaw/lifecycle > an agent > restarting an agent returns 202 at once, and starts a new process',
    'openclaw/lifecycle > an agent > an agent is not restarted with version "2020.1.1"',
  ],
  [
    '`POST /v0/agents/{agentId}/scripts/retry` runs build or start again',
    'openclaw/lifecycle > an agent > an agent can run its scripts again',
  ],
  [
    '`POST /v0/agents/{agentId}/platform/token` creates a JWT',
    'agents/tokens > platform tokens > a platform token is a JWT for one hour, and contains no secrets',
  ],
  [
    '`GET /v0/agents/{agentId}/tasks`',
    'openclaw/tasks > a task > a task may be created disabled, and is then listed only on request',
  ],
  [
    'a task requires `name`, `schedule` and `payload` (`POST /v0/agents/{agentId}/tasks`)',
    'openclaw/tasks > a task > a task is created as requested, and delivers nowhere by default',
    'openclaw/tasks > a task > a task accepts each kind of schedule',
    'openclaw/tasks > a task > a task is refused with no name',
    'openclaw/tasks > a task > a task is refused with no schedule',
    'openclaw/tasks > a task > a task is refused with no payload',
  ],
  [
    'the issues endpoints return 404 for accounts outside of the operator’s domain',
    'agents/issues > issues > issues return 404 for every account',
    'agents/issues > issues > issues return 401 without a key, or with an invalid one',
  ],
]

/** Contract 4. */
export const endpoints: Section[] = [
  { title: '4.1 Pin by CID', rows: pinByCid },
  { title: '4.2 Swap history', rows: swapHistory },
  { title: '4.3 Agents', rows: agents },
]
