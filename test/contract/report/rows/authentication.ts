import type { Section } from '../rows.ts'

/** Contract 5. */
export const authentication: Section[] = [
  {
    title: '5 Authentication',
    rows: [
      [
        'every request carries `Authorization: Bearer <key>`',
        'auth > a request without a valid key > a request without a valid key returns 401 on every route that needs one',
        'auth > a token > a token is accepted with any spelling of Bearer',
      ],
      [
        "the key is a JWT, created with the account's keys",
        'auth > a token > a token is a JWT that names its workspace, its user and its key',
        'keys > /v3/pinata/keys > /v3/pinata/keys creates a working key, lists it and revokes it',
      ],
      [
        'endpoints need scopes',
        'auth > scopes > only key tests, feedback, joining, the closed beta and own-account routes need no scope',
      ],
      [
        'pin by CID needs `org:files:write`',
        'who-may.processes > access by credential > the access table matches docs/security.md',
        'auth > the order of checks > the scope is checked after the key',
      ],
      [
        'swap history needs `org:files:read`',
        "swaps > the swap history > any workspace's key that may read files can read the swap history",
      ],
      [
        'a key belongs to one workspace: a key of another workspace gets 401',
        'agents/access > agent routes > agent routes return 401 for every stranger, and change nothing',
      ],
      [
        'an agent’s gateway has its own token, which can be rotated',
        'agents/tokens > rotating the gateway token > rotating the gateway token revokes the old one and its platform tokens at once',
      ],
      [
        'after a rotation, the old token gets 401',
        'agents/tokens > rotating the gateway token > rotating the gateway token revokes the old one and its platform tokens at once',
        'openclaw/live-secrets > a running agent > rotating the token of a running agent closes every route to the old one at once',
      ],
      [
        'after a rotation, a push with the old token fails as not authorized',
        'openclaw/git > the gateway token after a rotation > the previous gateway token is no longer a valid password',
      ],
      [
        'a request without the header gets 401',
        'auth > a request without a valid key > a request without a valid key returns 401 on every route that needs one',
      ],
      [
        'an expired key gets 401',
        'auth > a key > a key stops working when it expires',
        'agents/access > agent routes > agent routes return 401 for every stranger, and change nothing',
      ],
      [
        'a revoked key gets 401',
        'auth > a key > a key revoked over HTTP fails on the next request',
        'auth > a key > a key revoked by the command line stops working',
        'agents/access > agent routes > agent routes return 401 for every stranger, and change nothing',
      ],
      [
        'a JWT without a user gets 401 `Missing userId`',
        'auth > a key > a key that acts for no user gets 401 Missing userId, whatever its scopes',
        'auth > a key > a key whose user has left the workspace gets 401 Missing userId',
      ],
      [
        'a caller without permission in the workspace gets 403',
        'who-may.processes > access by credential > the access table matches docs/security.md',
      ],
      [
        'a paid feature returns 403 on the free plan',
        "agents/plans > the free plan > the free plan has no channels, not even by the agent's own token",
        'pin-by-cid > a pin > a pin is not part of the free plan',
        'swaps > a swap > a swap returns 403 on the free plan, and for a key that may not write',
      ],
    ],
  },
]
