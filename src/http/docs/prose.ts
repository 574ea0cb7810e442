/** The parts of the document that belong to no single route: introduction, groups of routes, shared parameters. */

export const INTRODUCTION = `Berth keeps files on IPFS and hosts AI agents: a container each, with a workspace that is saved on IPFS as well.

Requests carry an API key: \`Authorization: Bearer <key>\`. \`npm start\` prints the first one; \`npx berth keys create\`
makes more. Without one go those under *Health* and *Documentation*, those by which people sign in or join, and those
whose address has the permission in it, such as signed URLs.

**Long work is an operation.** A request that starts one answers with its id in \`Operation-Id\`. Follow it with
\`GET /v0/operations/{id}?wait=30\`, or stream it from \`/v0/operations/{id}/events\`. \`Prefer: wait=30\` makes the
request itself wait. A POST with an \`Idempotency-Key\` may be repeated: the repeat finds the first operation.

**Pages of any origin** may call every route that takes a key or has its permission in the address, and read the
answers, errors too. Only pages of this host may call the routes for sign-in and sessions. No answer
allows credentials, so browsers never send a session's cookie from another origin: such a page sends a key.

**Content is read at gateways.** They have host names of their own, which \`GET /v3/gateways\` lists, and none of
these routes. \`/ipfs/{cid}[/path]\` is a public file, with ranges, ETags, \`?filename=\`, \`?download=true\`,
\`?format=raw\` and \`?format=car\`; \`/files/{cid}[/path]\` is a private one, with a URL from
\`POST /v3/files/private/download_link\`. A gateway serves only what its workspace keeps. All its pages share one
host, so each runs in a sandbox, without cookies or storage. An image is resized or converted by \`?img-width=\` and its
other options.

**Errors** are \`{"error": "<message>"}\`. The \`Error-Code\` header has a word for machines, and \`X-Request-Id\`
finds the request in the log. Under *Pinning Service API* they are that specification's.

**Text** has neither NUL nor half of a surrogate pair.

**Lists** come in pages: \`next_page_token\` goes into \`pageToken\`, and is empty on the last page.`

/** In the order of the document. A route's tag must be one of these. */
export const TAGS = [
  ['Pin by CID', 'Ask for content that is on IPFS already, and follow it until it is pinned.'],
  [
    'Pinning Service API',
    'The IPFS Pinning Service API 1.0.0, for clients that speak it: `ipfs pin remote service add berth ' +
      '<this host>/psa <key>` teaches it to a Kubo. Pins are the same as those above, and `requestid` is the ' +
      'id of the file. Its clients read errors as `{"error": {"reason", "details"}}`, so under `/psa` they are so.',
  ],
  [
    'Uploads',
    'Files, folders and CARs as multipart forms, and large files in pieces, as of tus 1.0.0. A form that is cut off ' +
      'leaves nothing behind; an upload in pieces may be taken up again for a day. What a workspace has already is ' +
      'not stored again: the answer is the file that it has.',
  ],
  ['Files', 'Content that is pinned, with its name, group and metadata.'],
  ['Groups', 'Folders for files; a file is in one group or none.'],
  ['Swaps', 'Newer content under the address of a CID that was given away before.'],
  ['Signatures', 'What the owner of a file has signed with a wallet, for others to check.'],
  ['Gateways', 'Host names under which a workspace serves its files, and who may read there.'],
  ['Analytics', 'What gateways have served: requests and bytes by content, program, page and day.'],
  [
    'Agents',
    'An agent runs an engine in a container of its own. It comes up in about half a minute, restarts on another ' +
      'version of its engine, and keeps its files until it is deleted.',
  ],
  [
    'Templates',
    'What agents can begin with: files, and what their manifest asks for. Some ship with Berth; a workspace makes others ' +
      'out of snapshots of its agents or of public git repositories, and nobody else sees them.',
  ],
  [
    'Secrets',
    'Values that the agents of a workspace need, such as keys of model providers. Berth keeps them encrypted; an agent ' +
      'gets those that are attached to it, as environment variables.',
  ],
  [
    'Skills',
    'Folders with SKILL.md on IPFS, which teach agents how to do things. The library of a workspace names them and ' +
      'their versions; an agent gets the folders of those that are attached to it, and finds them without a restart.',
  ],
  [
    'ClawHub',
    'Skills that anybody may install into a library: some ship with Berth, its operator may add others.',
  ],
  ['Agent tokens', 'By what an agent is reached, and what it may say of itself.'],
  ['Conversations', 'What people and an agent say to each other; the engine keeps it.'],
  ['OpenAI', 'An agent as clients of OpenAI’s API talk to it.'],
  ['Console', 'Commands that a shell runs in an agent.'],
  ['Agent files', 'What an agent has below `/home/node/clawd`.'],
  [
    'Git',
    'The agent’s own folder is a git repository. `git clone https://x:<gateway token>@<host>/v0/agents/<agentId>.git` has ' +
      'all of it that is kept in snapshots; a push changes it, and builds it.',
  ],
  ['Agent config', "The engine's own `openclaw.json`."],
  ['Channels', 'Messengers by which people reach an agent. Not part of the free plan.'],
  ['Devices', "Clients with a key of their own that are paired with an agent's gateway."],
  ['Tasks', 'What an agent does by itself at a time or every so often.'],
  [
    'Snapshots',
    'The history of what an agent keeps in its folder: commits whose files are pinned on IPFS, each as one folder.',
  ],
  [
    'Domains and routes',
    'How the pages of an agent’s own programs are reached: by names of their own, or by paths of its host.',
  ],
  [
    'Webhooks',
    'Addresses that are told of the events of a workspace, each delivery signed as Standard Webhooks 1.0 says, and tried again for a day.',
  ],
  ['Feedback', 'Messages for the operator of this Berth, who reads them with `npx berth feedback`.'],
  ['Issues', 'A closed beta, in which no account of Berth takes part: all of it is 404.'],
  ['Usage', 'Whether a key works, and how much its workspace stores.'],
  ['Operations', 'Work that outlives a request: its progress, its end, and how to cancel it.'],
  [
    'Events',
    'What changes in a workspace, as it happens. `docs/events.md` has the types, and who sees which.',
  ],
  ['Workspaces', 'What a key belongs to: its name, its plan and what it uses.'],
  ['Members', 'Who works in the workspace, and as what: owner, member or viewer.'],
  [
    'Invitations',
    'How others come into a workspace: an owner hands them a token, which makes a member of whoever has it, once.',
  ],
  ['API keys', 'Who may call. A key belongs to one workspace, and its scopes say what it may do.'],
  [
    'Audit',
    'Who did what, to what, when, from where, and how it ended, for owners of the workspace. Entries are neither changed nor ' +
      'removed, and kept for the time that the operator has set.',
  ],
  [
    'Sessions',
    'How people sign in to the dashboard. A session is a cookie, good on this host alone, with the rights of its user’s role; a request that changes something by it also needs the header `Berth-Session: 1`.',
  ],
  [
    'Passkeys',
    'Keys that the devices of a user keep, and by which they sign in, with their finger, face or PIN. They are made for one host name, where browsers allow it: with https, or on this machine.',
  ],
  [
    'Identities',
    'Who users are at the OpenID provider that the operator has set, if any: whoever is linked here signs in there.',
  ],
  [
    'Instance',
    'For admins of the instance, with keys that have a scope for it: plans, all workspaces, what is kept, and how the parts are.',
  ],
  ['Health', 'For load balancers and monitoring.'],
  ['Documentation', 'This document, for machines and for people.'],
] as const

/** Parameters that mean the same wherever they appear; a description at the route goes first. */
export const PARAMETERS: Record<string, { description: string; enum?: string[]; example?: unknown }> = {
  id: { description: 'The id, a UUID. One that is malformed is nobody’s, and answers 404.' },
  workspaceId: { description: 'The id of the workspace of the key, a UUID. Any other one answers 404.' },
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
  conversationId: { description: 'A UUID of the client’s own: the first message begins it.' },
  jobId: { description: 'The id of the task.' },
  model: { description: 'The id of a model in the list of models, such as `openclaw/default`.' },
  requestId: { description: 'The id of the pairing request.' },
  channel: { description: 'The messenger.', enum: ['telegram', 'slack', 'discord', 'whatsapp'] },
  domainId: { description: 'The id of the domain, a UUID.' },
  custom_domain_id: { description: 'The id of the domain, a UUID.' },
  skillId: { description: 'The id of the skill in the library, a UUID.' },
  templateId: { description: 'The id of the template, 8 characters.', example: 't42smfjt' },
  slug: { description: 'The name in addresses.', example: 'assistant' },
  category: { description: 'Only this category.', example: 'productivity' },
  featured: { description: 'Only those that are featured, or only those that are not.' },
  submittedBy: { description: '`me`: only those that this user made.', enum: ['me'] },
  secretId: { description: 'The id of the secret, a UUID.' },
  gateway_id: { description: 'The id of the gateway, a UUID.' },
  item_id: { description: 'The id of the access token, a UUID.' },
  plugin_id: { description: 'The number of the plugin: 2 is hot swaps.', example: 2 },
  domain: { description: 'The name of a gateway: the left label of its host.', example: 'catalogues' },
  limit: { description: 'How many items a page has.' },
  order: { description: 'By age: `ASC` oldest first, `DESC` newest first.', enum: ['ASC', 'DESC'] },
  sort: { description: 'The same as `order`.', enum: ['ASC', 'DESC'] },
  pageToken: { description: 'The `next_page_token` of the page before.' },
  offset: { description: 'How many items to skip.' },
  mimeType: { description: 'Only this media type.', example: 'image/png' },
  keyvalues: {
    description: 'Metadata, as `keyvalues[<key>]=<value>`; all pairs must match.',
    example: { season: 'spring' },
  },
  metadata: { description: 'The same as `keyvalues`.', example: { season: 'spring' } },
  status: { description: 'Only requests in this status.' },
  state: { description: 'Only operations in this state.' },
  kind: { description: 'Only operations of this kind.' },
  isPublic: { description: 'Only groups that are public, or only those that are not.' },
  revoked: { description: 'Only keys that are revoked, or only those that are not.' },
  limitedUse: { description: 'Only keys with a limited number of uses, or only those without.' },
  exhausted: { description: 'Only keys with no uses left, or only those with some.' },
}
