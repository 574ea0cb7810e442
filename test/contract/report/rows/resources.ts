import type { Section } from '../rows.ts'

const PIN = 'pin-by-cid > a pin > a pin returns exactly the fields of the contract'
const SWAP = 'swaps > a swap > a swap returns its entry, which the history lists'

/** Contract 2 and 3. */
export const resources: Section[] = [
  {
    title: '2.1 Pin record',
    rows: [
      ['`id` is a string, and the file has the same id', PIN],
      [
        '`name` is a string',
        PIN,
        'pin-by-cid > the name of a pin > the name of a pin may be "schöne 🚢\\n<b>"',
      ],
      ['`cid` is the requested CID, as it was spelled', PIN, 'pin-by-cid > a CID > a CID may be v0'],
      [
        '`keyvalues` map strings to strings',
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
        'pin-states > a pin request > a pin request is prechecking first, then searching while no node provides it',
        'pin-states > a pin request > a pin request is retrieving once a block has arrived, and pinned once all have',
        'pin-states > a pin request > a pin request is bad_host_node if no host node responds and no other node has the content',
        'pin-states > a pin request > a pin request is invalid_object if its root does not decode',
        'pin-states > a pin request on a plan with limits > a pin request on a plan with limits is over_max_size if it exceeds the size of one file',
        'pin-states > a pin request on a plan with limits > a pin request on a plan with limits is over_free_limit if it exceeds the remaining storage',
        'settings.processes > a pin request > a pin request is backfilled beyond the search limit, and expired if no node was found',
      ],
      ['`date_queued` is the time of queueing', PIN],
      ['`hose_nodes`: the response spells it like this; Berth sends `host_nodes` as well', PIN],
    ],
  },
  {
    title: '2.2 Swap entry',
    rows: [
      ['`mapped_cid` is the target of the swap', SWAP],
      [
        '`created_at` is UTC in ISO 8601 with microseconds and Z',
        SWAP,
        'swaps > the swap history > the swap history keeps the order of swaps in the same microsecond',
      ],
    ],
  },
  {
    title: '2.3 Error body',
    rows: [
      [
        '`error` is a human-readable message, and the only field',
        'auth > a request without a valid key > a request without a valid key returns 401 on every route that needs one',
        'body > a body > a body is required',
        'health > an unknown route > an unknown route returns 404: GET /nowhere',
      ],
    ],
  },
  {
    title: '2.4 Identifiers and request fields',
    rows: [
      ['`agentId` in paths', 'agents/access > agent routes > agent routes return 404 for an unknown agent'],
      [
        '`skillId` in paths',
        'agents/attached-skills > detaching a skill > detaching a skill leaves it in the library, and says so [report: error texts]',
        'agents/attached-skills > skill updates > a skill update rejects unknown skills and versions, and malformed fields',
      ],
      [
        '`slug` of a skill or a template in paths',
        'agents/templates > templates that ship with Berth > templates that ship with Berth are read by slug and by id',
      ],
      [
        '`snapshotCid` of a reset',
        'openclaw/snapshots > resetting an agent > resetting an agent returns 400 for {}',
        'openclaw/snapshots > resetting an agent > resetting an agent returns 400 for {"snapshotCid":"latest"}',
        'openclaw/snapshots > resetting an agent > resetting an agent returns 404 for a snapshot outside its history',
      ],
      [
        'the id of a custom domain in paths',
        'agents/domains > existing domains > the port and protection of a domain can be changed, but not its name',
        'foreign-ids > ids > an id of another workspace, agent or network returns 404 on every route, and changes nothing',
      ],
      [
        '`channel` in paths',
        'openclaw/channels > channels > a channel that is not configured cannot be removed',
      ],
    ],
  },
  {
    title: '3 States and transitions',
    rows: [
      [
        'a custom domain is `pending_ownership` until its TXT record `_service-verify.<domain>` is found',
        'agents/domains > custom domains > a custom domain is pending until its TXT record is found',
        'agents/domains > custom domains > a pending custom domain is checked again automatically',
      ],
      [
        'it is then `verified`, and registering it elsewhere returns 409',
        'agents/domains > custom domains > a custom domain is pending until its TXT record is found',
        'agents/domains > custom domains > many may claim a custom domain, and the first to prove it gets it: 409 for all others',
        'agents/domains > custom domains > concurrent proofs of a custom domain: one of two tenants gets it',
      ],
      [
        'an agent is provisioned after its creation, and its chat is offline until then',
        'openclaw/lifecycle > a starting agent > the chat of an agent is offline while it starts',
        'openclaw/lifecycle > an agent > an agent is listed, and returned with its process',
      ],
      [
        'if the gateway does not start, the response is 500 with the agent, which is listed and can be restarted',
        'openclaw/late-engine > an agent that does not start in time > an agent that does not start in time returns 500, is listed, and can be restarted',
      ],
    ],
  },
]
