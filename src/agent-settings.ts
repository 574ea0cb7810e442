/** The settings of agents: where and how they run, what they may use, and how they are reached. A part of `settings.ts`. */
import { resolve } from 'node:path'
import { z } from 'zod'
import { kubernetesSettings } from './kubernetes-settings.ts'
import { flag, integer, list, networks, seconds, socketPath, text, url } from './setting-types.ts'

export const agentSettings = {
  BERTH_RUNTIME: z
    .enum(['docker', 'process', 'kubernetes', 'auto'])
    .default('auto')
    .describe(
      'Where agents run: `docker`, `kubernetes`, `process` (to try it out: little isolation, see BERTH_AGENTS_READ_KEYS) or `auto`, which takes Docker where it answers and can have an engine image.',
    ),
  BERTH_AGENTS_READ_KEYS: z
    .enum(['refuse', 'accept'])
    .default('refuse')
    .describe(
      "Whether agents may be created where they would run as Berth's own user without a wall (as processes, Berth not started as root, and no user namespaces): each of them can then read jwt.key, secrets.key, agent-proxy.key, the password of the database and the environment of Berth's processes, and act as any user. `accept` is for agents of your own.",
    ),
  DOCKER_HOST: url('unix', 'tcp', 'http', 'https')
    .optional()
    .describe('The Docker engine of the worker. Not set: its usual socket.'),
  ...kubernetesSettings,
  BERTH_INSTANCE: text
    .regex(/^[a-z0-9-]{1,40}$/, 'must have letters, digits and dashes only')
    .optional()
    .describe(
      'Label (`berth.instance`) under which agents of this Berth were made in Docker before the database knew one: by 0.1.0, or with a database that was lost. Those that are in the database are taken over. Not needed otherwise.',
    ),
  BERTH_BASE_IMAGE: text
    .default('node:24-bookworm-slim')
    .describe(
      'What engine images are built from: Debian with Node 24. For `berth engines build --push` and `--output` also the path of an archive.',
    ),
  BERTH_ENGINE_IMAGE: text
    .regex(/^[^{}]*:[\w.-]*\{version\}[\w.-]*$/, 'must be an image with {version} in its tag')
    .optional()
    .describe(
      'Image of an engine version for clusters, such as registry.example.org/berth/openclaw:{version}, which `berth engines build --push` writes. Has to be set with BERTH_RUNTIME=kubernetes, and there has to be one for BERTH_ENGINE_VERSION and each of BERTH_ENGINE_VERSIONS.',
    ),
  BERTH_ENGINE_VERSION: text.default('2026.9.6').describe('Version of OpenClaw that new agents run.'),
  BERTH_ENGINE_VERSIONS: list
    .default(['2026.9.6', '2026.9.5'])
    .describe('Versions that agents may be restarted on, beside those that are built already.'),
  // Workers mark what they need once an hour.
  BERTH_ENGINE_GRACE_SECONDS: seconds(10_800, 31_536_000)
    .default(604_800)
    .describe(
      'An engine, image or folder, that no agent runs and no setting names is removed after this time; so is an image that was made from an older base or agentd.',
    ),
  BERTH_ENGINES_DIR: text
    .transform((dir) => resolve(dir))
    .optional()
    .describe('Folder of installed engine versions. Not set: under BERTH_DATA_DIR.'),
  BERTH_AGENTS_DIR: text
    .transform((dir) => resolve(dir))
    .optional()
    .describe('Folder of agents that run as processes. Not set: under BERTH_DATA_DIR.'),
  BERTH_AGENT_DOMAIN: text
    .toLowerCase()
    .regex(/^[a-z0-9-]+(\.[a-z0-9-]+)*$/, 'must be a host name')
    .default('agents.localhost')
    .describe(
      'Agents are at <agentId>.<this domain>, and call the API at the domain itself: point both names, the first as a wildcard DNS record, at the web process.',
    ),
  BERTH_AGENT_SUBNETS: text
    .regex(/^\d+\.\d+\.\d+\.\d+\/(8|9|1\d|2[0-4])$/, 'must be an IPv4 network like 10.231.0.0/16')
    .default('10.231.0.0/16')
    .describe("Addresses of agents' networks, cut into one of 8 for each agent; the same for all processes."),
  BERTH_AGENT_MEMORY_MB: integer(1024, 1_048_576).default(2048).describe('Memory of one agent.'),
  BERTH_AGENT_CPUS: z.coerce.number().min(0.1).max(256).default(2).describe('Processors of one agent.'),
  BERTH_AGENT_PIDS: integer(64, 32_768).default(512).describe('Processes and threads of one agent.'),
  BERTH_AGENT_DISK_MB: integer(64, 1_048_576)
    .default(10_240)
    .describe(
      'Disk of one agent, where its plan has no limit of its own. A hard limit with BERTH_DISKS_SOCKET; without, it is counted every ten seconds, and a large home less often, so that counting takes at most a fiftieth of the time; an agent that goes over it is stopped.',
    ),
  BERTH_DISKS_SOCKET: socketPath
    .optional()
    .describe(
      'Unix socket of the disk helper (role `disks`), in a folder that `worker` and it alone can reach. Set: new agents in Docker get a disk with a hard limit. Not set: their disks are counted.',
    ),
  BERTH_DISKS_DIR: text
    .transform((dir) => resolve(dir))
    .default('/var/lib/berth-disks')
    .describe(
      'Folder of the disk helper, with the image of the disks. It is on the machine of Docker, at the same path there.',
    ),
  BERTH_DISKS_MB: integer(256, 1_073_741_824)
    .optional()
    .describe(
      'Size of the image with the disks of all agents, which takes that much at once; a larger one later makes it grow.',
    ),
  BERTH_DISKS_DEVICE: text
    .regex(/^\//, 'must be the path of a device')
    .optional()
    .describe('Device with a btrfs of yours, in place of an image.'),
  BERTH_AGENT_CONCURRENCY: integer(1, 1000)
    .default(4)
    .describe('Agents that one worker process brings up, restarts or removes side by side.'),
  BERTH_AGENT_READY_SECONDS: seconds(1, 3600)
    .default(180)
    .describe('A gateway that is not ready within this time has failed.'),
  BERTH_AGENT_RECONCILE_SECONDS: seconds(0.1, 86_400)
    .default(5)
    .describe('Interval of the loop that compares agents with their containers.'),
  BERTH_STOP_AGENTS: flag
    .default(false)
    .describe(
      'Whether a worker that is told to end stops the agents of its machine; the next start brings them up again. `npm start` sets it.',
    ),
  BERTH_CONSOLE_SECONDS: seconds(0.1, 3600)
    .default(60)
    .describe('A console command that runs longer is killed.'),
  BERTH_CONSOLE_OUTPUT_BYTES: integer(1024, 1_073_741_824)
    .default(1_048_576)
    .describe('Output of a console command that is kept.'),
  BERTH_AGENT_UPLOAD_BYTES: integer(1, 268_435_456)
    .default(8_388_608)
    .describe('Largest file that can be uploaded to an agent, and read from one.'),
  BERTH_SNAPSHOT_NETWORK: z
    .enum(['public', 'private', 'none'])
    .default('private')
    .describe('IPFS network on which snapshots of agents are pinned; `none`: there are no snapshots.'),
  BERTH_SNAPSHOT_SECONDS: seconds(0.5, 86_400)
    .default(60)
    .describe('An agent whose workspace has changed is saved within about this time.'),
  BERTH_SNAPSHOT_KEEP: integer(1, 100_000)
    .default(50)
    .describe('Newest snapshots of an agent that are kept.'),
  BERTH_SNAPSHOT_KEEP_DAYS: integer(0, 36_500)
    .default(30)
    .describe('Beside those, the last snapshot of each of this many days is kept.'),
  BERTH_CLAWHUB_URL: z
    .union([z.literal(''), url('http', 'https')])
    .default('')
    .describe('A hub of skills that is offered beside those that ship with Berth; empty for none.'),
  BERTH_CLAWHUB_DIR: text
    .transform((dir) => resolve(dir))
    .optional()
    .describe(
      'Folder of skills (`<owner>/<name>/SKILL.md`) that the hub offers beside those that ship with Berth.',
    ),
  BERTH_GIT_ALLOW: list
    .default([])
    .describe(
      'host:port pairs that templates may be fetched from although they are private, by http as well; all other repositories have to be public, and on https.',
    ),
  BERTH_APP_DOMAIN: text
    .toLowerCase()
    .regex(/^[a-z0-9-]+(\.[a-z0-9-]+)*$/, 'must be a host name')
    .default('apps.localhost')
    .describe(
      "Agents' own pages are at <subdomain>.<this domain>, and custom domains point there: point a wildcard DNS record at the web process. Must be another site than the API's where browsers sign in.",
    ),
  BERTH_DNS_SERVER: text
    .regex(/^[\da-f.:[\]]+$/i, 'must be an IP address, with a port where it is not 53')
    .optional()
    .describe('DNS server that is asked about custom domains. Not set: those of the machine.'),
  BERTH_TELEGRAM_URL: z
    .union([z.literal(''), url('http', 'https')])
    .default('https://api.telegram.org')
    .describe('Bot API that is asked whether a bot token is good; empty for none.'),
  BERTH_PLATFORM_TOKEN_SCOPE: z
    .enum(['agent', 'workspace'])
    .default('agent')
    .describe(
      'How far the token reaches that an agent mints for itself: its agent; or its workspace, where it sees all agents, makes agents, secrets and templates and installs skills, and the agent attaches secrets to itself.',
    ),
  BERTH_MODEL_URL: url('http', 'https')
    .optional()
    .describe('OpenAI-compatible address of the default model of all agents, ending in /v1. Not set: none.'),
  BERTH_MODEL: text.default('default').describe('Name of the default model at BERTH_MODEL_URL.'),
  BERTH_MODEL_KEY: text
    .optional()
    .describe('Key for BERTH_MODEL_URL. Every agent gets to know it: take one with a limit.'),
  BERTH_MODEL_CONTEXT: integer(1024, 100_000_000)
    .default(128_000)
    .describe('Tokens that the default model can read.'),
  BERTH_AGENT_PROXY_SOCKET: socketPath
    .optional()
    .describe(
      'Unix socket of the agent proxy’s tunnels, in place of a port: the same for `web`, `worker` and `agent-proxy`, in a folder that they share. `npm start` takes one under BERTH_DATA_DIR unless BERTH_AGENT_PROXY_URL or BERTH_AGENT_PROXY_PORT is set.',
    ),
  BERTH_AGENT_PROXY_URL: url('http')
    .optional()
    .describe(
      'Where `web` and `worker` reach the agent proxy. Not set: BERTH_AGENT_PROXY_SOCKET, or BERTH_AGENT_PROXY_PORT on this machine.',
    ),
  BERTH_AGENT_PROXY_PORT: integer(0, 65535)
    .optional()
    .describe(
      'Port of the agent proxy’s tunnels, where BERTH_AGENT_PROXY_SOCKET is not set; `npm start` takes a free one for 0. Not set: 3130.',
    ),
  BERTH_AGENT_PROXY_ADDRESS: text.default('127.0.0.1').describe('Address of the agent proxy.'),
  BERTH_EGRESS_PORT: integer(0, 65535)
    .optional()
    .describe(
      "Port of the agent proxy's egress, which `worker` asks it for; 0 takes a free one at each start. Not set: 3128 where that is free at the first start, else another one, kept in `egress.port` under BERTH_DATA_DIR, since agents' containers hold it.",
    ),
  BERTH_EGRESS_HOST: text
    .default('127.0.0.1')
    .describe("Address of the agent proxy's egress, beside the networks of agents."),
  BERTH_EGRESS_ALLOW: list
    .default([])
    .describe('host:port pairs that the egress proxy lets through although they are private.'),
  BERTH_EGRESS_REFUSE: networks
    .default([])
    .describe(
      'Networks (`address/bits`) that the egress proxy refuses although they are public, such as those of the nodes of a cluster.',
    ),
  BERTH_EGRESS_URL: url('http')
    .optional()
    .describe(
      'Where agents reach the egress of several agent proxies, as they do in a cluster: their Service. A name in it is looked up when `worker` starts, since agents resolve none. Has to be set with BERTH_RUNTIME=kubernetes. Each proxy then serves all addresses in BERTH_AGENT_SUBNETS, and needs AGENT_PROXY_KEY. Not set: one proxy, on the machine of the agents.',
    ),
  BERTH_WEB_URL: url('http')
    .optional()
    .describe(
      'Where an agent proxy in a cluster reaches `web`: its Service. Agents that call Berth by a name of loopback, as PUBLIC_URL is while Berth is tried by a forwarded port, are led there. Not set: to loopback of the agent proxy.',
    ),
  BERTH_AGENT_PROXY_STOP_SECONDS: seconds(0, 3600)
    .default(0)
    .describe(
      'How long an agent proxy that is told to stop still takes connections while /readyz is 503, until nothing leads to it any more.',
    ),
  BERTH_AGENT_PROXY_DRAIN_SECONDS: seconds(0, 3600)
    .default(5)
    .describe('How long the connections of an agent proxy have to end after that.'),
}
