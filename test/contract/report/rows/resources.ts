import type { Section } from '../rows.ts'

const PIN = 'pin-by-cid > a pin > a pin is answered with exactly the fields of the contract'
const SWAP = 'swaps > a swap > a swap answers with the entry, which is the history'

/** Contract 2 and 3. */
export const resources: Section[] = [
  {
    title: '2.1 Pin record',
    rows: [
      ['`id` is text, and the file has it as well', PIN],
      ['`name` is text', PIN, 'pin-by-cid > the name of a pin > the name of a pin may be "schöne 🚢\\n<b>"'],
      ['`cid` is the CID that was asked for, as it was spelled', PIN, 'pin-by-cid > a CID > a CID may be v0'],
      [
        '`keyvalues` are texts by texts',
        PIN,
        'pin-by-cid > the keyvalues of a pin > the keyvalues of a pin may be any text',
      ],
      [
        '`group_id` is the group of the file',
        PIN,
        'pin-by-cid > the group of a pin > the group of a pin may be named in any case',
      ],
      [
        '`status` is the status of the pin',
        PIN,
        'pin-states > a pin request > a pin request is prechecking first, then searching while nobody provides it',
        'pin-states > a pin request > a pin request is retrieving once a block has come, and pinned once all have',
        'pin-states > a pin request > a pin request is bad_host_node when no host node answers and nobody else has it',
        'pin-states > a pin request > a pin request is invalid_object when its root does not decode',
        'pin-states > a pin request on a plan with limits > a pin request on a plan with limits is over_max_size above the size of one file',
        'pin-states > a pin request on a plan with limits > a pin request on a plan with limits is over_free_limit above what the workspace has left',
        'settings.processes > a pin request > a pin request is backfilled while as many searches run as a workspace may have, and expired when nobody came',
      ],
      ['`date_queued` is when it was queued', PIN],
      ['`hose_nodes`: the answer spells it so; Berth sends `host_nodes` as well', PIN],
    ],
  },
  {
    title: '2.2 Swap entry',
    rows: [
      ['`mapped_cid` is the CID to which it was swapped', SWAP],
      [
        '`created_at` is UTC in ISO 8601 with microseconds and Z',
        SWAP,
        'swaps > the swap history > the swap history keeps the order of what has one and the same microsecond',
      ],
    ],
  },
  {
    title: '2.3 Error body',
    rows: [
      [
        '`error` is a message for people, and the only field',
        'auth > a request without a valid key > a request without a valid key is 401 on every route that needs one',
        'body > a body > a body is required',
        'health > an unknown route > an unknown route is 404: GET /nowhere',
      ],
    ],
  },
  {
    title: '2.4 Identifiers and request fields',
    rows: [
      [
        '`agentId` in paths',
        'agents/access > the routes of an agent > the routes of an agent are 404 where there is no such agent',
      ],
      [
        '`skillId` in paths',
        'agents/attached-skills > detaching a skill > detaching a skill leaves it in the library',
        'agents/attached-skills > updates of skills > updates of skills refuse what is not there, and bad fields',
      ],
      [
        '`slug` of a skill or a template in paths',
        'agents/templates > templates that ship with Berth > templates that ship with Berth are read by slug and by id',
      ],
      [
        '`snapshotCid` of a reset',
        'openclaw/snapshots > a reset > a reset is 400 for {}',
        'openclaw/snapshots > a reset > a reset is 400 for {"snapshotCid":"latest"}',
        'openclaw/snapshots > a reset > a reset is 404 for what is not in the history of this agent',
      ],
      [
        'the id of a custom domain in paths',
        'agents/domains > a domain that is there > a domain that is there changes its port and its protection, and not its name',
        'agents/domains > a domain that is there > a domain is 404 where it is not on this agent',
      ],
      ['`channel` in paths', 'openclaw/channels > channels > channels that are not there cannot be removed'],
    ],
  },
  {
    title: '3 States and transitions',
    rows: [
      [
        'a custom domain is `pending_ownership` until its TXT record `_service-verify.<domain>` is seen',
        'agents/domains > a custom domain > a custom domain is pending until its TXT record is seen',
        'agents/domains > a custom domain > a custom domain is looked at again by itself',
      ],
      [
        'it is `verified` then, and nobody else can register it: 409',
        'agents/domains > a custom domain > a custom domain is pending until its TXT record is seen',
        'agents/domains > a custom domain > a custom domain may be claimed by many, and is had by who proves it: 409 for all others from then on',
        'agents/domains > a custom domain > a custom domain is had by one of two tenants who prove it at once',
      ],
      [
        'an agent is provisioned after its creation, and its chat is offline meanwhile',
        'openclaw/lifecycle > an agent that comes up > an agent that comes up has its chat offline until then',
        'openclaw/lifecycle > an agent > an agent is listed, and read with its process',
      ],
      [
        'where the gateway does not start, the answer is 500 with the agent, which is listed and can be restarted',
        'openclaw/late-engine > an agent that does not come up in time > an agent that does not come up in time is 500 with the agent, which is listed, and can be restarted',
      ],
    ],
  },
]
