import type { Section } from '../rows.ts'

/** Contract 5. */
export const authentication: Section[] = [
  {
    title: '5 Authentication',
    rows: [
      [
        'every request carries `Authorization: Bearer <key>`',
        'auth > a request without a valid key > a request without a valid key is 401 on every route that needs one',
        'auth > a token > a token may be named by any spelling of Bearer',
      ],
      [
        'the key is a JWT, made among the keys of the account',
        'auth > a token > a token is a JWT that names its workspace, its user and its key',
        'keys > /v3/pinata/keys > /v3/pinata/keys makes a key that works, lists it and revokes it',
      ],
      [
        'endpoints need scopes',
        'auth > a scope > a scope is required by every route that needs a key, but the test of the key itself, feedback and the closed beta',
      ],
      [
        'pin by CID needs `org:files:write`',
        'auth > a scope > a key with org:files:read is 200 on a read and 403 on a write',
        'auth > a scope > a key with org:files:write is 200 on a read and 200 on a write',
        'auth > a request is checked > a request is checked for the scope after its key',
      ],
      [
        'swap history needs `org:files:read`',
        'swaps > the swap history > the swap history may be read with a key of any workspace that may read files',
      ],
      [
        'a key belongs to one workspace: of another one it is 401',
        'agents/access > the routes of an agent > the routes of an agent are 401 for every stranger, and change nothing',
      ],
      [
        'an agent’s gateway has a token of its own, which can be rotated',
        'agents/tokens > rotating the gateway token > rotating the gateway token ends the old one, and the platform tokens minted by it, at once',
      ],
      [
        'after the rotation the old one is 401',
        'agents/tokens > rotating the gateway token > rotating the gateway token ends the old one, and the platform tokens minted by it, at once',
        'openclaw/live-secrets > a running agent > a running agent is closed to its old token at once, on every route, with a rotation',
      ],
      [
        'after the rotation a push with the old one fails as not authorized',
        'openclaw/git > the gateway token after its rotation > the gateway token after its rotation is no password any more',
      ],
      [
        'without the header it is 401',
        'auth > a request without a valid key > a request without a valid key is 401 on every route that needs one',
      ],
      [
        'with an expired key it is 401',
        'auth > a key > a key ends when it expires',
        'agents/access > the routes of an agent > the routes of an agent are 401 for every stranger, and change nothing',
      ],
      [
        'with a revoked key it is 401',
        'auth > a key > a key ends with its revocation over HTTP, from the next request on',
        'auth > a key > a key ends with its revocation by the command line',
        'agents/access > the routes of an agent > the routes of an agent are 401 for every stranger, and change nothing',
      ],
      [
        'a JWT that leads to no user is 401 `Missing userId`',
        'auth > a key > a key that acts for nobody is 401 Missing userId, whatever its scopes',
        'auth > a key > a key whose user has left the workspace is 401 Missing userId',
      ],
      [
        'whom the workspace does not permit it is 403',
        'auth > a role > the role viewer reads, and is denied every write',
        'agents/access > the routes of an agent > the routes of an agent are 403 for keys and users that may not, and change nothing',
      ],
      [
        'a paid feature is 403 on the free plan',
        'agents/plans > the free plan > the free plan has no channels, also for the agent itself',
        'pin-by-cid > a pin > a pin is not part of the free plan',
        'swaps > a swap > a swap is 403 on the free plan, and for a key that may not write',
      ],
    ],
  },
]
