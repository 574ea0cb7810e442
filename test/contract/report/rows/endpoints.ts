import type { Row, Section } from '../rows.ts'

const PIN = 'pin-by-cid > a pin > a pin is answered with exactly the fields of the contract'
const LEAST = 'pin-by-cid > a pin > a pin needs nothing but the CID'
const PIN_HEADERS = "headers > the headers of a pin that was accepted are the contract's"

const pinByCid: Row[] = [
  ['`POST /v3/files/public/pin_by_cid` answers 200 with `{data: <pin record>}`', PIN],
  [
    'it needs the scope `org:files:write`',
    'auth > a request is checked > a request is checked for the scope after its key',
    'auth > a scope > a key with org:files:write is 200 on a read and 200 on a write',
  ],
  [
    '`cid` is required',
    LEAST,
    'pin-by-cid > a CID > a CID may not be undefined',
    'pin-by-cid > a CID > a CID may not be a word',
  ],
  ['`name` is optional text', PIN, LEAST, 'pin-by-cid > the name of a pin > the name of a pin may not be 5'],
  [
    '`group_id` is optional',
    PIN,
    LEAST,
    'pin-by-cid > the group of a pin > the group of a pin must be of the workspace',
  ],
  [
    '`keyvalues` are optional, and their values text',
    PIN,
    LEAST,
    'pin-by-cid > the keyvalues of a pin > the keyvalues of a pin may not have a number',
  ],
  [
    '`host_nodes` are optional ids of nodes, as `ipfs id` says them',
    PIN,
    LEAST,
    'pin-by-cid > the host nodes of a pin > the host nodes of a pin may be peer ids and multiaddrs, up to a hundred of them',
  ],
  ['the answer is `application/json; charset=utf-8`', PIN_HEADERS],
  ['it has `Date`, `Content-Length` and `Connection`', PIN_HEADERS],
  [
    'it has `X-Request-Id`',
    PIN_HEADERS,
    'headers > X-Request-Id > X-Request-Id is another one each time, whatever the client sends',
  ],
  ['it has `Strict-Transport-Security`', PIN_HEADERS],
]

const swapHistory: Row[] = [
  [
    '`GET /v3/files/{network}/swap/{cid}` answers 200 with `{data: [<swap entry>, …]}`',
    'swaps > a swap > a swap answers with the entry, which is the history',
    'swaps > the swap history > the swap history has fifty swaps in a row in their order, newest first',
  ],
  [
    'it needs the scope `org:files:read`',
    'swaps > the swap history > the swap history may be read with a key of any workspace that may read files',
  ],
  [
    '`network` is public or private',
    'swaps-served > a swap of private files > a swap of private files has a history that only its workspace reads',
    'swaps > the swap history > the swap history is 404 for a CID that was never swapped, and on the other network',
    'swaps > a swap > a swap is 400 for other/swap/bafkqaalb {"swap_cid":"bafkqaalb"}',
  ],
  [
    '`cid` is the original one',
    'swaps > a swap > a swap is the same however its CIDs are spelled, and shows the new one as it was spelled',
    'swaps > the swap history > the swap history is 400 without one gateway, and for what is no CID',
  ],
  [
    'the query names the gateway’s domain (`domain`, required)',
    'swaps > the swap history > the swap history is found by any spelling of its gateway',
    'swaps > the swap history > the swap history is 400 without one gateway, and for what is no CID',
    'swaps > the swap history > the swap history is 404 at a gateway without the plugin',
  ],
]

const agents: Row[] = [
  [
    '`POST /v0/agents` with `name`',
    'openclaw/lifecycle > an agent > an agent has exactly these fields',
    'openclaw/lifecycle > creating an agent > creating an agent is 400 for {}',
    'openclaw/lifecycle > creating an agent > creating an agent stops at the limit of the plan, however many ask at once',
  ],
  ['`GET /v0/agents`', 'openclaw/lifecycle > an agent > an agent is listed, and read with its process'],
  [
    '`POST /v0/secrets` with `name` and `value`, neither empty',
    'agents/secrets > a secret > a secret is created with exactly these fields, and listed with its agents',
    'agents/secrets > a malformed secret is 400 > a malformed secret is 400 for an empty name',
    'agents/secrets > a malformed secret is 400 > a malformed secret is 400 for an empty value',
  ],
  [
    '`POST /v0/agents/{agentId}/secrets`',
    'agents/attachments > attaching secrets > attaching a secret gives it to the agent with its next restart',
    'agents/attachments > two credentials of one provider > two credentials of one provider (GEMINI_API_KEY, GOOGLE_API_KEY) are 409, one after the other and together',
    'openclaw/live-secrets > a running agent > a running agent has a secret from its next restart on, and says so',
  ],
  [
    '`POST /v0/agents/{agentId}/skills`, at most 10',
    'agents/attached-skills > attaching skills > attaching skills adds skills of the library',
    'agents/attached-skills > attaching skills > attaching skills takes ten, and no more',
    'openclaw/live-skills > a skill in a running agent > a skill in a running agent is there without a restart, and is gone again',
    'openclaw/engine-skills > the engine of a running agent > the engine of a running agent sees skills come and go without a restart',
  ],
  [
    '`POST /v0/agents/{agentId}/skills/{skillId}/update` resolves a conflict of versions',
    'agents/attached-skills > updates of skills > updates of skills give the newest version, or the one that is named',
    'agents/attached-skills > updates of skills > updates of skills conflict where another version is attached than the caller thinks',
    'openclaw/live-skills > a skill that the agent has changed > a skill that the agent has changed is not lost by an update, which says so; its owner decides',
  ],
  [
    '`POST /v0/clawhub/{slug}/install` installs a skill into the library',
    'agents/clawhub > installing a skill of the hub > installing a skill of the hub puts it on public IPFS and into the library, once',
    'agents/clawhub > a skill of the hub > a skill of the hub is 404 where there is none',
  ],
  [
    '`GET /v0/templates`',
    'agents/templates > templates that ship with Berth > templates that ship with Berth are listed for every workspace, and without a key',
    'agents/templates-changed > a list of templates > a list of templates has what ships first, then the workspace’s own',
  ],
  [
    '`GET /v0/agents/{agentId}/snapshots`',
    'openclaw/snapshots > the history > the history of a new agent is empty',
    'openclaw/snapshots > the history > the history of an agent is listed by tens, the newest first, and page by page',
  ],
  [
    '`POST /v0/agents/{agentId}/snapshots/sync` pins a snapshot of the workspace',
    'openclaw/snapshots > an agent’s workspace > an agent’s workspace is saved',
    'openclaw/snapshots > an agent’s workspace > an agent’s workspace that has not changed is not saved twice',
  ],
  [
    '`POST /v0/agents/{agentId}/snapshots/reset` with `snapshotCid`, of the agent’s own history',
    'openclaw/snapshots > an agent’s workspace > an agent’s workspace goes back to a snapshot, however its CID is spelled',
    'openclaw/snapshots > a reset > a reset is 404 for what is not in the history of this agent',
  ],
  [
    '`POST /v0/agents/{agentId}/console/exec` with `command`, not empty, and `cwd`, a folder',
    'openclaw/console > a command > a command answers with what it said, and its exit code',
    "openclaw/console > a command > a command runs in the agent's root, or where it is told to",
    'openclaw/console > a command > a command is refused when it is an empty text',
    'openclaw/console > a command > a command is refused in a folder that is not there',
  ],
  [
    '`POST /v0/agents/{agentId}/config/validate` with `config`, valid JSON',
    'openclaw/config > validating a config > validating a config says that what is there is valid, with and without a body',
    'openclaw/config > validating a config > validating a config says what the engine finds wrong, and writes nothing',
    'openclaw/config > validating a config > validating a config that is no JSON object is 400',
  ],
  [
    '`GET /v0/agents/{agentId}/config`',
    'openclaw/config > the config > the config of an agent is read as text, with its secrets redacted',
  ],
  [
    '`PUT /v0/agents/{agentId}/config` with `config`',
    'openclaw/config > the config > the config of an agent is written as text or as an object',
    'openclaw/config > the config > the config of an agent stays through a restart',
  ],
  [
    '`POST /v0/agents/{agentId}/domains` with one of `subdomain` and `customDomain`, at most 5',
    'agents/domains > a subdomain > a subdomain is there at once',
    'agents/domains > a custom domain > a custom domain is pending until its TXT record is seen',
    'agents/domains > a domain is 400 > a domain is 400 with a name, a port or a protection that it cannot have',
    'agents/domains > a domain is 400 > the sixth domain of an agent is 400, also where twenty are added at once',
  ],
  [
    '`GET /v0/agents/{agentId}/domains`',
    'agents/domains > a subdomain > a subdomain is there at once',
    'agents/domains > a custom domain > a custom domain is pending until its TXT record is seen',
  ],
  [
    '`POST /v0/agents/{agentId}/channels/{channel}` with `botToken`, and for slack `appToken`; four channels',
    'openclaw/channels > channels > channels are shown with the end of their tokens only, which are stored encrypted',
    'openclaw/channels > channels > channels are refused: slack with {"botToken":"xoxb-1-secret-of-slack-bot"}',
    'openclaw/channels > a channel of an agent that runs > a channel of an agent that runs reaches its engine, which loads it, and answers 202 before where the client does not wait',
  ],
  [
    '`DELETE /v0/agents/{agentId}/channels/{channel}`',
    'openclaw/channels > a channel of an agent that runs > a channel of an agent that runs is gone from it once it is removed',
    'openclaw/channels > channels > channels that are not there cannot be removed',
  ],
  [
    '`POST /v0/agents/{agentId}/files/upload` with `filename`, not empty, and `contentBase64`, no data URL',
    'openclaw/files > uploading a file > uploading a file puts it into the uploads of the workspace',
    'openclaw/files > uploading a file > uploading a file refuses a name that is empty',
    'openclaw/files > uploading a file > uploading a file refuses "data:text/plain;base64,YQ==" as content',
  ],
  [
    '`GET /v0/agents/{agentId}/devices`',
    'openclaw/devices > a device > a device waits until it is approved, and is paired then',
  ],
  [
    '`POST /v0/agents/{agentId}/restart` with `version`, 400 for one that is not there',
    'openclaw/lifecycle > an agent > a restart of an agent answers 202 at once, and gives it another process',
    'openclaw/lifecycle > an agent > an agent is not restarted on version "2020.1.1"',
  ],
  [
    '`POST /v0/agents/{agentId}/scripts/retry` runs build or start again',
    'openclaw/lifecycle > an agent > an agent has its scripts run again',
  ],
  [
    '`POST /v0/agents/{agentId}/platform/token` mints a JWT',
    'agents/tokens > a platform token > a platform token is a JWT for one hour, with nothing secret in it',
  ],
  [
    '`GET /v0/agents/{agentId}/tasks`',
    'openclaw/tasks > a task > a task may be switched off from the start, and is listed then only for those who ask',
  ],
  [
    'a task takes `name`, `schedule` and `payload`, all required (`POST /v0/agents/{agentId}/tasks`)',
    'openclaw/tasks > a task > a task is created with what was asked for, and delivers nowhere unless told',
    'openclaw/tasks > a task > a task takes each sort of schedule',
    'openclaw/tasks > a task > a task is refused with no name',
    'openclaw/tasks > a task > a task is refused with no schedule',
    'openclaw/tasks > a task > a task is refused with no payload',
  ],
  [
    'the issues endpoints are 404 for accounts outside of the operator’s domain',
    'agents/issues > issues > issues are 404 for every account',
    'agents/issues > issues > issues are 401 without a key, or with a bad one',
  ],
]

/** Contract 4. */
export const endpoints: Section[] = [
  { title: '4.1 Pin by CID', rows: pinByCid },
  { title: '4.2 Swap history', rows: swapHistory },
  { title: '4.3 Agents', rows: agents },
]
