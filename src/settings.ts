/** Every setting of Berth: its name, allowed values, default and meaning. `config.ts` reads them. */
import { resolve } from 'node:path'
import { z } from 'zod'
import { agentSettings } from './agent-settings.ts'
import { readBucket } from './lib/bucket-name.ts'
import { parseKeep } from './lib/keep.ts'
import {
  address,
  bucket,
  database,
  flag,
  group,
  integer,
  issuer,
  joinRules,
  list,
  previousNode,
  proxies,
  redis,
  replication,
  seconds,
  socketPath,
  text,
  url,
} from './setting-types.ts'

/**
 * Each variable with its rule and default. `docs/settings.md` is generated from the descriptions, and `x-settings` in
 * docker-compose.yml from the names (`npm run docs:settings`). A setting that the stack fixes goes into `FIXED` of
 * scripts/stack-settings.ts.
 */
export const settings = z.object({
  PORT: integer(0, 65535).default(3000).describe('Port of the web process; 0 picks a free one.'),
  HOST: text.default('127.0.0.1').describe('Address on which the web process listens; `0.0.0.0` for all.'),
  PUBLIC_URL: url('http', 'https')
    .optional()
    .describe('URL at which clients reach Berth, if it is not http://HOST:PORT.'),
  BERTH_DATA_DIR: text
    .default('.berth')
    .transform((dir) => resolve(dir))
    .describe('Folder for keys and all embedded components.'),
  BERTH_DISK_RESERVE_MB: integer(0, 1_073_741_824)
    .optional()
    .describe(
      'Space that stays free on each disk to which Berth itself writes. With less, it rejects new content (507), but continues to serve, delete and collect garbage. Not set: 5 % of the disk or 2 GiB, whichever is less.',
    ),
  DATABASE_URL: database.optional().describe('PostgreSQL 14 or newer. Not set: `npm start` runs its own.'),
  DATABASE_DIRECT_URL: database
    .optional()
    .describe(
      'The same database without a pooler, if DATABASE_URL leads through [PgBouncer](failover.md#pgbouncer) in transaction mode: for locks, notifications, migrations and backups.',
    ),
  REDIS_URL: redis
    .optional()
    .describe(
      'Redis 6.2 or newer, or Valkey, for the queue and the rate limits; `redis+sentinel://` names [the Sentinels](failover.md#redis) of several. Not set: the queue is in PostgreSQL.',
    ),
  IPFS_API_URL: url('http', 'https')
    .optional()
    .describe('RPC address of a Kubo node, 0.43 or newer. Not set: the embedded node.'),
  IPFS_PRIVATE_API_URL: url('http', 'https')
    .optional()
    .describe(
      "RPC address of the private network's Kubo node, which must not be the public one. Not set: an embedded store without a network.",
    ),
  IPFS_CLUSTER_API_URL: url('http', 'https')
    .optional()
    .describe(
      'REST address of the peer of IPFS Cluster next to the Kubo of IPFS_API_URL, which then also keeps copies of pinned content on the Kubos of other peers. Only Berth may pin in that Cluster and its Kubos.',
    ),
  IPFS_PRIVATE_CLUSTER_API_URL: url('http', 'https')
    .optional()
    .describe(
      'The same for the private network: another IPFS Cluster, next to the Kubo of IPFS_PRIVATE_API_URL.',
    ),
  IPFS_CLUSTER_REPLICATION: replication
    .prefault('2-3')
    .describe(
      'Copies of pinned content in an IPFS Cluster, including the one next to Berth: `minimum-maximum`, or one number. A pin counts as soon as the minimum has all of it.',
    ),
  IPFS_API_URL_PREVIOUS: previousNode
    .optional()
    .describe(
      "During a move without downtime: the public network's previous Kubo, `embedded` for the embedded node with its blocks under BERTH_DATA_DIR, or `s3://bucket/prefix` for one with its blocks there. Both nodes get all new content, and the previous one is read. Unset it once `berth storage verify` finds everything in the new one.",
    ),
  IPFS_PRIVATE_API_URL_PREVIOUS: previousNode.optional().describe('The same for the private network.'),
  BERTH_BLOCKS_S3_URL: bucket
    .optional()
    .describe(
      'Bucket for the blocks of the embedded IPFS nodes, `s3://bucket/prefix`, instead of a folder: several machines can share it, with AWS_ENDPOINT_URL_S3, AWS_REGION and keys as for backups. Must be the same for all processes, and no other Berth may use the prefix. Not set: under BERTH_DATA_DIR.',
    ),
  BERTH_BLOCKS_CACHE_MB: group(
    'Space for recently read blocks from BERTH_BLOCKS_S3_URL, for each network. A number without a name is `memory`.',
    {
      memory: integer(1, 1_048_576).default(64).describe('in the memory of a process'),
      disk: integer(0, 1_073_741_824)
        .default(1024)
        .describe('under BERTH_DATA_DIR, for all processes that share it; 0: none'),
    },
    'memory',
  ),
  BERTH_OWN_KUBO: list
    .pipe(z.array(z.enum(['public', 'private'], 'must be public, private or both')))
    .default([])
    .describe(
      'Networks whose Kubo belongs only to this Berth, comma separated: public, private. Berth collects garbage there, so unpinned content from others is lost. Must be the same for all processes. Never name a Kubo that others, or another Berth, use. Its own `--enable-gc` must be off.',
    ),
  JWT_KEY: text
    .min(32)
    .optional()
    .describe('Signs API keys, at least 32 characters. Not set: generated once, under BERTH_DATA_DIR.'),
  JWT_KEY_PREVIOUS: text
    .min(32)
    .optional()
    .describe('The previous JWT_KEY during a key change: its API keys and signed URLs still work.'),
  LOG_LEVEL: z
    .enum(['debug', 'info', 'warn', 'error', 'silent'])
    .default('info')
    .describe('Minimum severity that is logged.'),
  BERTH_TRUST_PROXY: proxies
    .default(0)
    .describe(
      'Reverse proxies in front of the web process whose X-Forwarded-* headers are trusted. Either their number, if nobody else can reach the process, or a comma separated list of addresses, networks (10.0.0.0/8, `loopback`, `linklocal`, `uniquelocal`) and host names, which are looked up every five seconds.',
    ),
  BERTH_ADDRESS_LIMITS: group(
    'Limits per minute and web process for one client address (for IPv6, a /64). Loopback is not counted. Behind a proxy, set BERTH_TRUST_PROXY, or all clients count as one. 0: no limit.',
    {
      requests: integer(0, 1_000_000)
        .default(6000)
        .describe("requests without a key: gateways, agents' pages, documentation, signed URLs"),
      failedLogins: integer(0, 1_000_000)
        .default(60)
        .describe(
          'requests with an invalid key or token; valid keys still work from an address that has reached the limit, but not in the first message of a WebSocket to an agent',
        ),
    },
  ),
  BERTH_DASHBOARD: z
    .enum(['on', 'off'])
    .default('on')
    .describe('Whether `web` serves the dashboard, below `/dashboard` on its own host.'),
  BERTH_SESSIONS: group('When a dashboard session ends.', {
    hours: integer(1, 8760).default(168).describe('hours after its sign-in'),
    idleHours: integer(1, 8760).default(24).describe('hours without use, if that is earlier'),
  }),
  BERTH_OIDC_ISSUER: issuer
    .optional()
    .describe(
      'OpenID provider with which people may sign in to the dashboard: its issuer URL, as in `iss` of its tokens, with https. Register `<PUBLIC_URL>/login` there as the redirect URL. Not set: none.',
    ),
  BERTH_OIDC_CLIENT_ID: text
    .min(1)
    .optional()
    .describe("Berth's client id at that provider. Required with BERTH_OIDC_ISSUER."),
  BERTH_OIDC_CLIENT_SECRET: text
    .min(1)
    .optional()
    .describe("Berth's client secret at that provider. Required with BERTH_OIDC_ISSUER."),
  BERTH_OIDC_NAME: text
    .max(60)
    .default('single sign-on')
    .describe("The provider's name on the button, after “Sign in with”."),
  BERTH_OIDC_JOIN: joinRules
    .default([])
    .describe(
      'Users who become members at their first sign-in with that provider, without an invitation: `<domain>:<member or viewer>:<workspace>`, comma separated, for e-mail addresses of this domain that the provider has verified. Users who were removed from the workspace cannot rejoin this way. Not set: nobody.',
    ),
  BERTH_TLS_ASK: address
    .optional()
    .describe(
      'Port, or `host:port`, on which a TLS proxy such as Caddy asks `web` whether it serves a name: `GET /?domain=<name>` returns 200 or 404. Never publish it. The host defaults to loopback. Not set: none.',
    ),
  BERTH_HEALTH_PORT: integer(0, 65535)
    .optional()
    .describe(
      'Port on which `worker` and `agent-proxy` serve /healthz and /readyz, on HOST; `web` serves them on PORT. Not set: none.',
    ),
  BERTH_HEALTH_SOCKET: socketPath
    .optional()
    .describe(
      "Unix socket for /healthz and /readyz, instead of BERTH_HEALTH_PORT: for `agent-proxy` in a container that shares the machine's ports with others.",
    ),
  BERTH_METRICS_PORT: integer(0, 65535)
    .optional()
    .describe(
      'Port for /metrics, for Prometheus; 0 picks a free port, which the log names. With `npm start`, `web` uses this port, and `worker` and `agent-proxy` the next two. Not set: none.',
    ),
  BERTH_METRICS_HOST: text
    .default('127.0.0.1')
    .describe('Address of BERTH_METRICS_PORT. Access needs no key, so do not expose it to the public.'),
  BERTH_DATABASE_POOL: integer(2, 200)
    .default(10)
    .describe('Maximum PostgreSQL connections of one process, not counting those of its queues and leases.'),
  BERTH_QUEUES: list
    .optional()
    .describe(
      'Queues that this worker serves, comma separated: pins, repairs, storage, agents, workspaces, webhooks. Not set: all.',
    ),
  BERTH_CONCURRENCY: group('How much one worker process does at a time.', {
    pins: integer(1, 1000).default(16).describe('pins that it retrieves'),
    agents: integer(1, 1000)
      .default(4)
      .describe(
        'engines that it boots; takeovers of spares and removals of agents have as many places again',
      ),
  }),
  BERTH_PINS: group('How Berth searches for pins.', {
    stallSeconds: seconds(0.1, 86_400)
      .default(120)
      .describe('a pin attempt ends if no block arrives for this long'),
    retrySeconds: seconds(0.05, 86_400)
      .default(60)
      .describe(
        'wait before content that was not found is searched again; it grows fourfold each time, up to an hour and twice the age of the pin',
      ),
    expirySeconds: seconds(0.1, 31_536_000)
      .default(86_400)
      .describe('a pin whose content is not found within this time is `expired`'),
    active: integer(1, 1_000_000)
      .default(250)
      .describe('searches of one workspace at a time; the rest are `backfilled`'),
  }),
  BERTH_RETENTION: group('For how many days records are kept.', {
    operations: integer(1, 3650).default(30).describe('finished operations'),
    events: integer(1, 3650).default(30).describe('events; a reader that was away for longer gets 410'),
    deliveries: integer(1, 3650).default(7).describe('ended webhook deliveries'),
    analytics: integer(0, 3650).default(90).describe('counts of what gateways serve; 0: nothing is counted'),
    audit: integer(1, 3650).default(180).describe('the audit of who did what'),
  }),
  BERTH_INTERVALS: group('Seconds between runs of the background loops.', {
    reconcile: seconds(0.1, 86_400)
      .default(300)
      .describe('compares pins with the IPFS node, and removes expired files and uploads'),
    agents: seconds(0.1, 86_400).default(5).describe('compares agents with their containers'),
    snapshots: seconds(0.5, 86_400)
      .default(60)
      .describe('a changed workspace of an agent is saved within about this time'),
    gc: seconds(1, 31_536_000)
      .default(3600)
      .describe(
        "garbage collection in the embedded IPFS node, and minimum time between two collections in a Kubo that is Berth's own",
      ),
    gcGrace: seconds(1, 31_536_000)
      .default(3600)
      .describe(
        'the embedded IPFS node keeps an unpinned block for this long after its last use; must be the same for all processes',
      ),
    analytics: seconds(0.1, 3600)
      .default(60)
      .describe('a web process writes its counts of what gateways have served'),
    backups: seconds(1, 31_536_000)
      .default(86_400)
      .describe('a backup to BERTH_BACKUP_DIR is created when the newest one there is older than this'),
  }),
  BERTH_WEBHOOK_ALLOW: list
    .default([])
    .describe(
      'Webhook targets that may have private addresses and use http, as `host:port`, comma separated; a leading `*.` matches every subdomain.',
    ),
  BERTH_MCP_CLIENT_ALLOW: list
    .default([])
    .describe(
      'Clients of `/mcp` whose documents may have private addresses and use http, as `host:port`, comma separated; a leading `*.` matches every subdomain.',
    ),
  BERTH_ALLOW_PRIVATE_HOST_NODES: flag
    .default(false)
    .describe('Whether host nodes may be loopback or private addresses.'),
  BERTH_IPFS_LISTEN: list
    .default([])
    .describe(
      'Multiaddrs on which the embedded IPFS node serves its blocks to others, comma separated. Not set: nobody can connect to it, and the Pinning Service API names no delegates.',
    ),
  BERTH_IPFS_ROUTING_URL: z
    .union([z.literal(''), url('http', 'https')])
    .default('https://delegated-ipfs.dev')
    .describe(
      'Delegated HTTP routing service that the embedded IPFS node queries for providers; empty for none.',
    ),
  BERTH_GATEWAY_DOMAIN: text
    .toLowerCase()
    .regex(/^[a-z0-9-]+(\.[a-z0-9-]+)*$/, 'must be a host name')
    .default('gateway.localhost')
    .describe('Gateways are at <name>.<this domain>. Point a wildcard DNS record at the web process.'),
  BERTH_IMAGES: group('Conversion of images for gateway readers (`img-width` and so on).', {
    processes: integer(0, 64)
      .default(2)
      .describe(
        'how many images one web process converts at a time, each in a separate process of up to 0.8 GB, started on demand; 0: images are served unchanged',
      ),
    seconds: seconds(0.1, 600)
      .default(20)
      .describe('maximum time to convert an image, and maximum wait for its turn'),
    maxPixels: integer(1, 1_000_000_000)
      .default(50_000_000)
      .describe(
        "maximum pixels of a converted image, all frames together; the processes' memory grows with it, by 12 bytes per pixel",
      ),
    cacheMb: integer(0, 1_048_576)
      .default(256)
      .describe(
        'space for converted images of public files, kept under BERTH_DATA_DIR; the least recently read images are removed first; 0: none',
      ),
  }),
  BERTH_UPLOAD_DIR: text
    .transform((place) => (readBucket(place) ? place : resolve(place)))
    .optional()
    .describe(
      'Folder for the parts of resumable uploads, or bucket, `s3://bucket/prefix`, which no other Berth may use. Must be the same for all web processes. Not set: in the bucket of BERTH_BLOCKS_S3_URL, otherwise under BERTH_DATA_DIR.',
    ),
  BERTH_UPLOAD_EXPIRY_SECONDS: seconds(1, 31_536_000)
    .default(86_400)
    .describe('An unfinished resumable upload is removed after this time.'),
  SECRETS_KEY: text
    .refine((key) => key === '' || key.length >= 32, 'must have at least 32 characters')
    .optional()
    .describe(
      'Encrypts the secrets of agents, at least 32 characters. Not set: generated once, under BERTH_DATA_DIR; empty: no secrets can be stored.',
    ),
  SECRETS_KEY_PREVIOUS: text
    .min(32)
    .optional()
    .describe('The previous SECRETS_KEY during a key change: it still decrypts.'),
  BERTH_BACKUP_DIR: text
    .transform((target) => (target.startsWith('s3://') ? target : resolve(target)))
    .optional()
    .describe(
      'Folder, or `s3://bucket/prefix`, for automatic backups by a worker that serves agents. Not set: no automatic backups.',
    ),
  BERTH_BACKUP_KEEP: text
    .refine((keep) => parseKeep(keep) !== undefined, 'must be like 7d,4w,12m')
    .default('7d,4w,12m')
    .describe(
      'Backups that are kept in BERTH_BACKUP_DIR: the last one of each of this many days, weeks and months.',
    ),
  BERTH_BACKUP_PASSPHRASE: text
    .min(12)
    .optional()
    .describe('Encrypts the keys in a backup, at least 12 characters. Store it separately from the backups.'),
  BERTH_S3_PATH_STYLE: flag
    .default(false)
    .describe(
      "Whether buckets are named in the URL's path instead of its host name: for your own S3 server without a host name per bucket.",
    ),
  AGENT_PROXY_KEY: text
    .min(32)
    .optional()
    .describe(
      'Key for access to the agent proxy, at least 32 characters. Must be the same for `web`, `worker` and `agent-proxy`. Not set: generated once, under BERTH_DATA_DIR.',
    ),
  ...agentSettings,
})

/** Secrets may also come from a file: `NAME_FILE` contains its path. */
export const SECRETS = [
  'DATABASE_URL',
  'DATABASE_DIRECT_URL',
  'REDIS_URL',
  'IPFS_API_URL',
  'IPFS_PRIVATE_API_URL',
  'IPFS_API_URL_PREVIOUS',
  'IPFS_PRIVATE_API_URL_PREVIOUS',
  'IPFS_CLUSTER_API_URL',
  'IPFS_PRIVATE_CLUSTER_API_URL',
  'JWT_KEY',
  'JWT_KEY_PREVIOUS',
  'SECRETS_KEY',
  'SECRETS_KEY_PREVIOUS',
  'AGENT_PROXY_KEY',
  'BERTH_MODEL_KEY',
  'BERTH_MODEL_FALLBACK_KEY',
  'BERTH_OIDC_CLIENT_SECRET',
  'BERTH_BACKUP_PASSPHRASE',
] as const
