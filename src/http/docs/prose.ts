/** The parts of the document that belong to no single route: introduction, groups of routes, shared parameters. */

export const INTRODUCTION = `Berth keeps files on IPFS and hosts AI agents, each in its own container with a workspace that is saved on IPFS as well.

Requests carry an API key: \`Authorization: Bearer <key>\`. \`npm start\` prints the first one; \`npx berth keys create\`
creates more. No key is needed for routes under *Health* and *Documentation*, for routes to sign in or join, and for
URLs that carry their own permission, such as signed URLs.

**Long work is an operation.** A request that starts an operation returns its id in \`Operation-Id\`. Follow it with
\`GET /v0/operations/{id}?wait=30\`, or stream it from \`/v0/operations/{id}/events\`. \`Prefer: wait=30\` makes the
request itself wait. A POST with an \`Idempotency-Key\` may be repeated: the repeat finds the first operation.

**Pages of any origin** may call every route that takes a key or has its permission in the URL, and read the
responses, including errors. Only pages of this host may call the routes for sign-in and sessions. No response
allows credentials, so browsers never send a session cookie from another origin: such a page has to send a key.

**Gateways serve content.** They have their own host names, which \`GET /v3/gateways\` lists, and none of
these routes. \`/ipfs/{cid}[/path]\` is a public file, with ranges, ETags, \`?filename=\`, \`?download=true\`,
\`?format=raw\` and \`?format=car\`; \`/files/{cid}[/path]\` is a private one, with a URL from
\`POST /v3/files/private/download_link\`. A gateway serves only content that its workspace keeps. All its pages share one
host, so each runs in a sandbox, without cookies or storage. \`?img-width=\` and related options resize or convert
images.

**Errors** are \`{"error": "<message>"}\`. The \`Error-Code\` header is machine-readable, and \`X-Request-Id\`
identifies the request in the log. Under *Pinning Service API*, errors follow that specification.

**Text** must not contain NUL or half a surrogate pair.

**Lists** are paginated: pass \`next_page_token\` as \`pageToken\`; it is empty on the last page.`

/** In the order of the document. A route's tag must be one of these. */
export const TAGS = [
  [
    'Pin by CID',
    'Request content that is already on IPFS, and follow the request until the content is pinned.',
  ],
  [
    'Pinning Service API',
    'The IPFS Pinning Service API 1.0.0, for clients that support it: `ipfs pin remote service add berth ' +
      '<this host>/psa <key>` adds it to Kubo. Pins are the same as those above, and `requestid` is the ' +
      'id of the file. Errors under `/psa` have this API’s format: `{"error": {"reason", "details"}}`.',
  ],
  [
    'Uploads',
    'Files, folders and CARs as multipart forms, and large files as resumable uploads (tus 1.0.0). An interrupted form ' +
      'leaves nothing behind; a resumable upload may be resumed for a day. Content that a workspace already has is ' +
      'not stored again: the response is the existing file.',
  ],
  ['Files', 'Pinned content, with its name, group and metadata.'],
  ['Groups', 'Folders for files; a file is in at most one group.'],
  ['Swaps', 'Newer content at the address of a CID that was already shared.'],
  ['Signatures', 'Signatures of files by their owner’s wallet, for others to check.'],
  ['Gateways', 'Host names on which a workspace serves its files, and who may read them.'],
  ['Analytics', 'Requests and bytes that gateways served, by content, program, page and day.'],
  [
    'Agents',
    'An agent runs an engine in its own container. It starts in about half a minute, can restart on another ' +
      'version of its engine, and keeps its files until it is deleted.',
  ],
  [
    'Templates',
    'Starting points for agents: files and a manifest. Some ship with Berth; a workspace creates private ones ' +
      'from snapshots of its agents or from public git repositories.',
  ],
  [
    'Secrets',
    'Values that the agents of a workspace need, such as keys of model providers. Berth stores them encrypted; an agent ' +
      'gets its attached secrets as environment variables.',
  ],
  [
    'Skills',
    'Folders with SKILL.md on IPFS, which teach agents how to do things. A workspace’s library lists skills and ' +
      'their versions; an agent gets the folders of its attached skills, and finds them without a restart.',
  ],
  [
    'ClawHub',
    'Skills that anyone may install into a library: some ship with Berth, and its operator may add others.',
  ],
  [
    'Models',
    'Budgets for the models that agents call, what agents have spent, and a switch that stops them. A budget is checked before each call.',
  ],
  ['Egress', 'Hosts that agents may connect to, and those that they have asked for.'],
  ['Agent tokens', 'Tokens with which clients reach an agent, and with which an agent identifies itself.'],
  ['Conversations', 'Messages between people and an agent; the engine keeps them.'],
  ['Protocols', 'How other agents find an agent and talk to it, if its owner allows that.'],
  ['OpenAI', 'Access to an agent for clients of OpenAI’s API.'],
  ['Console', 'Commands that a shell runs in an agent.'],
  ['Agent files', 'The files of an agent below `/home/node/clawd`.'],
  [
    'Git',
    'The agent’s own folder is a git repository. `git clone https://x:<gateway token>@<host>/v0/agents/<agentId>.git` gets ' +
      'everything in it that snapshots contain; a push changes and builds it.',
  ],
  ['Agent config', "The engine's own `openclaw.json`."],
  ['Channels', 'Messengers through which people reach an agent. Not part of the free plan.'],
  ['Devices', "Clients with their own key that are paired with an agent's gateway."],
  ['Tasks', 'Work that an agent does by itself, once or on a schedule.'],
  [
    'Snapshots',
    'The history of an agent’s folder: commits whose files are pinned on IPFS, each as one folder.',
  ],
  [
    'Domains and routes',
    'How to reach the pages of an agent’s own programs: by their own host names, or by paths on its host.',
  ],
  [
    'Webhooks',
    'URLs that receive a workspace’s events. Each delivery is signed according to Standard Webhooks 1.0, and retried for a day.',
  ],
  ['Feedback', 'Messages for the operator of this Berth, who reads them with `npx berth feedback`.'],
  ['Issues', 'A closed beta without any Berth accounts: all routes return 404.'],
  ['Usage', 'Whether a key works, and how much its workspace stores.'],
  ['Operations', 'Work that outlives a request: its progress, its outcome, and its cancellation.'],
  ['Events', 'Changes in a workspace, as they happen. `docs/events.md` lists the types, and who sees which.'],
  ['Workspaces', 'The workspace that a key belongs to: its name, plan and usage.'],
  ['Members', 'The users of a workspace and their roles: owner, member or viewer.'],
  [
    'Invitations',
    'How to add others to a workspace: an owner gives them a token, whose holder can become a member, once.',
  ],
  [
    'API keys',
    'Credentials for callers. A key belongs to one workspace, and its scopes determine what it may do.',
  ],
  [
    'Audit',
    'For owners of the workspace: each change and sign-in, with its caller, target, time, origin and outcome. Entries are neither changed nor ' +
      'removed, and kept for the time set by the operator.',
  ],
  [
    'Sessions',
    'How people sign in to the dashboard. A session is a cookie, valid only on this host, with the rights of its user’s role. Its requests that change something also need the header `Berth-Session: 1`.',
  ],
  [
    'Passkeys',
    'Keys on a user’s devices, for signing in with a fingerprint, face or PIN. They work for one host name, if browsers allow it: with https, or on this machine.',
  ],
  [
    'Identities',
    'Users’ accounts at the operator’s OpenID provider, if there is one: users with a linked identity can sign in there.',
  ],
  [
    'Instance',
    'For admins of the instance, with keys that have a scope for it: plans, all workspaces, stored content, and the health of components.',
  ],
  [
    'MCP clients',
    'Clients of `/mcp` that ask a user for access in the browser. Metadata for them is below `/.well-known`; a code is exchanged at `/oauth/token`.',
  ],
  ['Health', 'For load balancers and monitoring.'],
  ['Documentation', 'This document, for programs and for people.'],
] as const

/** Parameters with the same meaning everywhere; a description at the route takes precedence. */
export const PARAMETERS: Record<string, { description: string; enum?: string[]; example?: unknown }> = {
  id: { description: 'The id, a UUID. A malformed id returns 404.' },
  workspaceId: { description: 'The id of the key’s workspace, a UUID. Any other id returns 404.' },
  userId: { description: 'The id of the user, a UUID.' },
  invitationId: { description: 'The id of the invitation, a UUID.' },
  sessionId: { description: 'The id of the session, a UUID.' },
  passkeyId: { description: 'The id of the passkey, a UUID.' },
  identityId: { description: 'The id of the identity, a UUID.' },
  keyId: { description: 'The id of the key, a UUID.' },
  deliveryId: { description: 'The id of the delivery, a UUID.' },
  role: { description: 'Only members with this role.' },
  agentId: { description: 'The id of the agent, 8 characters.', example: 'x7f3k2ab' },
  network: { description: 'The IPFS network.', enum: ['public', 'private'] },
  fileId: { description: 'The id of the file, a UUID.' },
  conversationId: {
    description: 'A UUID that the client chooses; the first message creates the conversation.',
  },
  jobId: { description: 'The id of the task.' },
  model: { description: 'The id of a model in the list of models, such as `openclaw/default`.' },
  requestId: { description: 'The id of the pairing request.' },
  channel: { description: 'The messenger.', enum: ['telegram', 'slack', 'discord', 'whatsapp'] },
  domainId: { description: 'The id of the domain, a UUID.' },
  custom_domain_id: { description: 'The id of the domain, a UUID.' },
  skillId: { description: 'The id of the skill in the library, a UUID.' },
  templateId: { description: 'The id of the template, 8 characters.', example: 't42smfjt' },
  slug: { description: 'The name in URLs.', example: 'assistant' },
  category: { description: 'Only this category.', example: 'productivity' },
  featured: { description: 'Only featured templates, or only others.' },
  submittedBy: { description: '`me`: only templates that this user created.', enum: ['me'] },
  secretId: { description: 'The id of the secret, a UUID.' },
  gateway_id: { description: 'The id of the gateway, a UUID.' },
  item_id: { description: 'The id of the access token, a UUID.' },
  plugin_id: { description: 'The number of the plugin: 2 is hot swaps.', example: 2 },
  domain: { description: 'The name of a gateway: the left label of its host.', example: 'catalogues' },
  limit: { description: 'The number of items per page.' },
  order: { description: 'By age: `ASC` oldest first, `DESC` newest first.', enum: ['ASC', 'DESC'] },
  sort: { description: 'The same as `order`.', enum: ['ASC', 'DESC'] },
  pageToken: { description: 'The `next_page_token` of the previous page.' },
  offset: { description: 'How many items to skip.' },
  mimeType: { description: 'Only this media type.', example: 'image/png' },
  keyvalues: {
    description: 'Metadata, as `keyvalues[<key>]=<value>`; all pairs must match.',
    example: { season: 'spring' },
  },
  metadata: { description: 'The same as `keyvalues`.', example: { season: 'spring' } },
  status: { description: 'Only requests with this status.' },
  state: { description: 'Only operations in this state.' },
  kind: { description: 'Only operations of this kind.' },
  isPublic: { description: 'Only public groups, or only others.' },
  revoked: { description: 'Only revoked keys, or only others.' },
  limitedUse: { description: 'Only keys with a limited number of uses, or only those without.' },
  exhausted: { description: 'Only keys with no uses left, or only those with some.' },
}
