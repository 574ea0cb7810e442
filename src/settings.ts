/** Every setting of Berth: its name, what it may be, its default and its meaning. `config.ts` reads them. */
import { resolve } from 'node:path'
import { z } from 'zod'
import { agentSettings } from './agent-settings.ts'
import { parseKeep } from './lib/keep.ts'
import {
  flag,
  integer,
  issuer,
  joinRules,
  list,
  proxies,
  seconds,
  socketPath,
  text,
  url,
} from './setting-types.ts'

/**
 * Each variable with its rule and default. The descriptions make `docs/settings.md`, the names `x-settings` of
 * docker-compose.yml (`npm run docs:settings`). A setting that the stack fixes goes into `FIXED` of scripts/stack-settings.ts.
 */
export const settings = z.object({
  PORT: integer(0, 65535).default(3000).describe('Port of the web process; 0 takes a free one.'),
  HOST: text.default('127.0.0.1').describe('Address the web process listens on; `0.0.0.0` for all.'),
  PUBLIC_URL: url('http', 'https')
    .optional()
    .describe('How clients reach Berth, where it is not http://HOST:PORT.'),
  BERTH_DATA_DIR: text
    .default('.berth')
    .transform((dir) => resolve(dir))
    .describe('Folder of keys and of every embedded part.'),
  BERTH_DISK_RESERVE_MB: integer(0, 1_073_741_824)
    .optional()
    .describe(
      'Space that stays free on each disk that Berth writes itself: with less, it refuses new content (507), and goes on serving, deleting and collecting. Not set: 5 % of the disk or 2 GiB, whichever is less.',
    ),
  DATABASE_URL: url('postgres', 'postgresql')
    .optional()
    .describe('PostgreSQL 14 or newer. Not set: `npm start` runs its own.'),
  REDIS_URL: url('redis', 'rediss')
    .optional()
    .describe('Redis for the queue and the rate limits. Not set: the queue lives in PostgreSQL.'),
  IPFS_API_URL: url('http', 'https')
    .optional()
    .describe('RPC address of a Kubo node, 0.43 or newer. Not set: the embedded node.'),
  IPFS_PRIVATE_API_URL: url('http', 'https')
    .optional()
    .describe(
      'RPC address of the Kubo node of the private network: another one than the public. Not set: an embedded store that is on no network.',
    ),
  BERTH_OWN_KUBO: list
    .pipe(z.array(z.enum(['public', 'private'], 'must be of public and private')))
    .default([])
    .describe(
      "Networks whose Kubo is Berth's own, comma separated, of public and private: Berth collects its garbage, so what others put there and did not pin is lost. The same for all processes. Never name one that others use, nor one that another Berth uses. Its own `--enable-gc` is to be off.",
    ),
  JWT_KEY: text
    .min(32)
    .optional()
    .describe('Signs API keys, at least 32 characters. Not set: made once, under BERTH_DATA_DIR.'),
  JWT_KEY_PREVIOUS: text
    .min(32)
    .optional()
    .describe('While JWT_KEY is changed: the one before, whose API keys and signed URLs still work.'),
  LOG_LEVEL: z
    .enum(['debug', 'info', 'warn', 'error', 'silent'])
    .default('info')
    .describe('Least severity that is logged.'),
  BERTH_TRUST_PROXY: proxies
    .default(0)
    .describe(
      'Reverse proxies in front of the web process whose X-Forwarded-* is believed: how many there are, where nobody else can reach it; or which, comma separated: addresses, networks (10.0.0.0/8, `loopback`, `linklocal`, `uniquelocal`) and host names, which are looked up every five seconds.',
    ),
  BERTH_ADDRESS_REQUESTS_PER_MINUTE: integer(0, 1_000_000)
    .default(6000)
    .describe(
      "Requests without a key that one client address (of IPv6, a /64) may send to one web process in a minute: gateways, agents' pages, documentation, signed URLs. Loopback is not counted. Behind a proxy set BERTH_TRUST_PROXY, or all clients count as one. 0: no limit.",
    ),
  BERTH_ADDRESS_FAILED_LOGINS_PER_MINUTE: integer(0, 1_000_000)
    .default(60)
    .describe(
      'Requests with a key or token that is not good, likewise. Good keys still work from an address that has sent as many, but not in the first message of a WebSocket to an agent. 0: no limit.',
    ),
  BERTH_DASHBOARD: z
    .enum(['on', 'off'])
    .default('on')
    .describe('Whether `web` serves the dashboard, below `/dashboard` on its own host.'),
  BERTH_SESSION_HOURS: integer(1, 8760)
    .default(168)
    .describe('A session of the dashboard ends this long after its sign-in.'),
  BERTH_SESSION_IDLE_HOURS: integer(1, 8760)
    .default(24)
    .describe('It ends before that where it is not used for this long.'),
  BERTH_OIDC_ISSUER: issuer
    .optional()
    .describe(
      'OpenID provider by whose word people may sign in to the dashboard: its issuer, as in `iss` of its tokens, by https. Register `<PUBLIC_URL>/login` there as the address to return to. Not set: none.',
    ),
  BERTH_OIDC_CLIENT_ID: text
    .min(1)
    .optional()
    .describe('What Berth is called at that provider. Needed with BERTH_OIDC_ISSUER.'),
  BERTH_OIDC_CLIENT_SECRET: text
    .min(1)
    .optional()
    .describe('Its secret there. Needed with BERTH_OIDC_ISSUER.'),
  BERTH_OIDC_NAME: text
    .max(60)
    .default('single sign-on')
    .describe('The provider on the button, behind “Sign in with”.'),
  BERTH_OIDC_JOIN: joinRules
    .default([])
    .describe(
      'Who becomes a member at their first sign-in by that provider, without an invitation: `<domain>:<member or viewer>:<workspace>`, comma separated, for e-mail addresses of this domain that the provider has verified. Who was removed from the workspace does not come back by it. Not set: nobody.',
    ),
  BERTH_TLS_ASK_PORT: integer(0, 65535)
    .optional()
    .describe(
      'Port on which `web` tells a TLS proxy such as Caddy whether it serves a name: `GET /?domain=<name>`, 200 or 404. Never publish it. Not set: none.',
    ),
  BERTH_TLS_ASK_HOST: text.default('127.0.0.1').describe('Address of BERTH_TLS_ASK_PORT.'),
  BERTH_HEALTH_PORT: integer(0, 65535)
    .optional()
    .describe(
      'Port on which `worker` and `agent-proxy` answer /healthz and /readyz, on HOST; `web` answers them on PORT. Not set: none.',
    ),
  BERTH_HEALTH_SOCKET: socketPath
    .optional()
    .describe(
      'Unix socket on which the same is answered, in place of BERTH_HEALTH_PORT: for `agent-proxy` in a container, which shares the ports of its machine with others.',
    ),
  BERTH_METRICS_PORT: integer(0, 65535)
    .optional()
    .describe(
      'Port of /metrics, for Prometheus; 0 takes a free one, which the log names. `npm start` gives it to `web`, the next one to `worker`, and the one after to `agent-proxy`. Not set: none.',
    ),
  BERTH_METRICS_HOST: text
    .default('127.0.0.1')
    .describe('Address of BERTH_METRICS_PORT. Whoever reaches it needs no key: keep it from the public.'),
  BERTH_DATABASE_POOL: integer(2, 200)
    .default(10)
    .describe('Most PostgreSQL connections of one process, beside those of its queues and leases.'),
  BERTH_QUEUES: list
    .optional()
    .describe(
      'Queues this worker serves, comma separated, of pins, repairs, storage, agents, workspaces and webhooks. Not set: all.',
    ),
  BERTH_PIN_CONCURRENCY: integer(1, 1000)
    .default(16)
    .describe('Pins that one worker process retrieves side by side.'),
  BERTH_PIN_STALL_SECONDS: seconds(0.1, 86_400)
    .default(120)
    .describe('An attempt ends when no block arrives for this long.'),
  BERTH_PIN_RETRY_SECONDS: seconds(0.05, 86_400)
    .default(60)
    .describe(
      'Wait before content that was not found is looked for again; it grows fourfold, up to an hour and to twice the age of the pin.',
    ),
  BERTH_PIN_EXPIRY_SECONDS: seconds(0.1, 31_536_000)
    .default(86_400)
    .describe('A pin whose content is not found within this time is `expired`.'),
  BERTH_PIN_ACTIVE_LIMIT: integer(1, 1_000_000)
    .default(250)
    .describe('Searches of one workspace at a time; the rest are `backfilled`.'),
  BERTH_DISPATCH_AHEAD: integer(1, 100_000)
    .default(4)
    .describe('Operations of one queue that are dispatched beside those for which a worker has a free slot.'),
  BERTH_OPERATION_RETENTION_DAYS: integer(1, 3650)
    .default(30)
    .describe('Finished operations are forgotten after this.'),
  BERTH_EVENTS_DAYS: integer(1, 3650)
    .default(30)
    .describe('Events are kept for so many days: a reader that was away for longer gets 410.'),
  BERTH_WEBHOOK_ALLOW: list
    .default([])
    .describe(
      'Targets of webhooks, as `host:port`, comma separated, that may have private addresses and take http; `*.` stands for every name below.',
    ),
  BERTH_WEBHOOK_DELIVERY_DAYS: integer(1, 3650)
    .default(7)
    .describe('Deliveries of webhooks that have ended are kept for so many days.'),
  BERTH_RECONCILE_SECONDS: seconds(0.1, 86_400)
    .default(300)
    .describe(
      'Interval of the loops that compare pins with the IPFS node, and remove files and uploads whose time has come.',
    ),
  BERTH_GC_SECONDS: seconds(1, 31_536_000)
    .default(3600)
    .describe(
      "Interval of garbage collection in the embedded IPFS node, and least time between two in a Kubo that is Berth's own.",
    ),
  BERTH_GC_GRACE_SECONDS: seconds(1, 31_536_000)
    .default(3600)
    .describe(
      'The embedded IPFS node keeps a block that nothing pins for this long after its last use; the same for all processes.',
    ),
  BERTH_ALLOW_PRIVATE_HOST_NODES: flag
    .default(false)
    .describe('Whether host nodes may be loopback or private addresses.'),
  BERTH_IPFS_LISTEN: list
    .default([])
    .describe(
      'Multiaddrs on which the embedded IPFS node serves its blocks to others, comma separated. Not set: none can connect to it, and the Pinning Service API names no delegates.',
    ),
  BERTH_IPFS_ROUTING_URL: z
    .union([z.literal(''), url('http', 'https')])
    .default('https://delegated-ipfs.dev')
    .describe('Delegated HTTP routing that the embedded IPFS node asks for providers; empty for none.'),
  BERTH_GATEWAY_DOMAIN: text
    .toLowerCase()
    .regex(/^[a-z0-9-]+(\.[a-z0-9-]+)*$/, 'must be a host name')
    .default('gateway.localhost')
    .describe('Gateways are at <name>.<this domain>: point a wildcard DNS record at the web process.'),
  BERTH_ANALYTICS_DAYS: integer(0, 3650)
    .default(90)
    .describe('What gateways serve is counted, and kept for so many days; 0: nothing is counted.'),
  BERTH_AUDIT_DAYS: integer(1, 3650)
    .default(180)
    .describe('The audit of who did what is kept for so many days.'),
  BERTH_ANALYTICS_FLUSH_SECONDS: seconds(0.1, 3600)
    .default(60)
    .describe('Interval at which a web process writes what its gateways have served.'),
  BERTH_IMAGE_PROCESSES: integer(0, 64)
    .default(2)
    .describe(
      'Images that one web process converts at a time for readers of gateways (`img-width` and so on), each in a process of its own of up to 0.8 GB, which starts when it is needed. 0: images leave as they are.',
    ),
  BERTH_IMAGE_SECONDS: seconds(0.1, 600)
    .default(20)
    .describe('Longest time to convert an image, and longest wait for its turn.'),
  BERTH_IMAGE_MAX_PIXELS: integer(1, 1_000_000_000)
    .default(50_000_000)
    .describe(
      'Most pixels of an image that is converted, all frames together. The memory of the processes grows with it, by 12 bytes for each.',
    ),
  BERTH_IMAGE_CACHE_MB: integer(0, 1_048_576)
    .default(256)
    .describe(
      'Converted images of public files that are kept under BERTH_DATA_DIR; the ones that were not read for the longest time go first. 0: none.',
    ),
  BERTH_UPLOAD_DIR: text
    .transform((dir) => resolve(dir))
    .optional()
    .describe(
      'Folder for the parts of resumable uploads, the same for all web processes. Not set: under BERTH_DATA_DIR.',
    ),
  BERTH_UPLOAD_EXPIRY_SECONDS: seconds(1, 31_536_000)
    .default(86_400)
    .describe('A resumable upload that was not finished within this time is removed.'),
  SECRETS_KEY: text
    .refine((key) => key === '' || key.length >= 32, 'must have at least 32 characters')
    .optional()
    .describe(
      'Encrypts the secrets of agents, at least 32 characters. Not set: made once, under BERTH_DATA_DIR; empty: no secrets can be stored.',
    ),
  SECRETS_KEY_PREVIOUS: text
    .min(32)
    .optional()
    .describe('While SECRETS_KEY is changed: the one before, which still decrypts.'),
  BERTH_BACKUP_DIR: text
    .transform((target) => (target.startsWith('s3://') ? target : resolve(target)))
    .optional()
    .describe(
      'Folder, or `s3://bucket/prefix`, into which a worker that serves agents makes backups by itself. Not set: none are made.',
    ),
  BERTH_BACKUP_SECONDS: seconds(1, 31_536_000)
    .default(86_400)
    .describe('A backup into BERTH_BACKUP_DIR is made when the newest one there is older than this.'),
  BERTH_BACKUP_KEEP: text
    .refine((keep) => parseKeep(keep) !== undefined, 'must be like 7d,4w,12m')
    .default('7d,4w,12m')
    .describe('Kept in BERTH_BACKUP_DIR: the last backup of each of so many days, weeks and months.'),
  BERTH_BACKUP_PASSPHRASE: text
    .min(12)
    .optional()
    .describe('Encrypts the keys in a backup, at least 12 characters. Keep it where the backups are not.'),
  BERTH_S3_PATH_STYLE: flag
    .default(false)
    .describe(
      'The bucket of backups is named in the path of a URL and not in its host name: for an S3 server of your own that has no names for its buckets.',
    ),
  AGENT_PROXY_KEY: text
    .min(32)
    .optional()
    .describe(
      'Opens the agent proxy, the same for `web`, `worker` and `agent-proxy`, at least 32 characters. Not set: made once, under BERTH_DATA_DIR.',
    ),
  ...agentSettings,
})

/** Secrets may also come from a file: `NAME_FILE` holds its path. */
export const SECRETS = [
  'DATABASE_URL',
  'REDIS_URL',
  'IPFS_API_URL',
  'IPFS_PRIVATE_API_URL',
  'JWT_KEY',
  'JWT_KEY_PREVIOUS',
  'SECRETS_KEY',
  'SECRETS_KEY_PREVIOUS',
  'AGENT_PROXY_KEY',
  'BERTH_MODEL_KEY',
  'BERTH_OIDC_CLIENT_SECRET',
  'BERTH_BACKUP_PASSPHRASE',
] as const
