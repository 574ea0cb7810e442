/**
 * The settings of agents: where and how they run, what they may use, and how to reach them. A part of `settings.ts`.
 */
import { resolve } from 'node:path'
import { z } from 'zod'
import { kubernetesSettings } from './kubernetes-settings.ts'
import { flag, group, integer, list, networks, seconds, socketPath, text, url } from './setting-types.ts'

export const agentSettings = {
  BERTH_RUNTIME: z
    .enum(['docker', 'process', 'kubernetes', 'auto'])
    .default('auto')
    .describe(
      'Where agents run: `docker`, `kubernetes`, `process` (to try it out: little isolation, see BERTH_AGENTS_READ_KEYS) or `auto`, which uses Docker if it responds and an engine image is available.',
    ),
  BERTH_AGENTS_READ_KEYS: z
    .enum(['refuse', 'accept'])
    .default('refuse')
    .describe(
      "Whether agents may be created if they would run as Berth's own user without isolation (as processes, with Berth not started as root and without user namespaces). Each agent can then read jwt.key, secrets.key, agent-proxy.key, the database password and the environment of Berth's processes, and act as any user. Use `accept` only for your own agents.",
    ),
  DOCKER_HOST: url('unix', 'tcp', 'http', 'https')
    .optional()
    .describe("The Docker engine that the worker uses. Not set: Docker's default socket."),
  ...kubernetesSettings,
  BERTH_BASE_IMAGE: text
    .default('node:24-bookworm-slim')
    .describe(
      'Base of engine images: Debian with Node 24. For `berth engines build --push` and `--output`, it can also be the path of an archive.',
    ),
  BERTH_ENGINE_IMAGE: text
    .regex(/^[^{}]*:[\w.-]*\{version\}[\w.-]*$/, 'must be an image with {version} in its tag')
    .optional()
    .describe(
      'Image of an engine version for clusters, such as registry.example.org/berth/openclaw:{version}, which `berth engines build --push` writes. Required with BERTH_RUNTIME=kubernetes; an image must exist for each of BERTH_ENGINE_VERSIONS.',
    ),
  BERTH_ENGINE_VERSIONS: list
    .pipe(z.tuple([text], text))
    .default(['2026.9.6', '2026.9.5'])
    .describe(
      'Versions of OpenClaw, comma separated: new agents run the first, and agents may be restarted on each of them, in addition to those already built.',
    ),
  // Workers mark the engines that they need once an hour.
  BERTH_ENGINE_GRACE_SECONDS: seconds(10_800, 31_536_000)
    .default(604_800)
    .describe(
      'An engine image or folder that no agent runs and no setting names is removed after this time. So is an image that was built from an older base or agentd.',
    ),
  BERTH_ENGINES_DIR: text
    .transform((dir) => resolve(dir))
    .optional()
    .describe('Folder for installed engine versions. Not set: under BERTH_DATA_DIR.'),
  BERTH_AGENTS_DIR: text
    .transform((dir) => resolve(dir))
    .optional()
    .describe('Folder for agents that run as processes. Not set: under BERTH_DATA_DIR.'),
  BERTH_AGENT_DOMAIN: text
    .toLowerCase()
    .regex(/^[a-z0-9-]+(\.[a-z0-9-]+)*$/, 'must be a host name')
    .default('agents.localhost')
    .describe(
      'Agents are reachable at <agentId>.<this domain>, and call the API at the domain itself. Point both names, the first as a wildcard DNS record, at the web process.',
    ),
  BERTH_AGENT_SUBNETS: text
    .regex(/^\d+\.\d+\.\d+\.\d+\/(8|9|1\d|2[0-4])$/, 'must be an IPv4 network like 10.231.0.0/16')
    .default('10.231.0.0/16')
    .describe(
      "Address range of agents' networks, divided into a network of 8 addresses for each agent. Must be the same for all processes.",
    ),
  BERTH_POOL: integer(0, 1000)
    .default(0)
    .describe(
      'How many spare agents run before anybody asks for them. A new agent takes one over and need not wait for its engine to start. Each uses the memory of an idle agent.',
    ),
  BERTH_AGENT_LIMITS: group('Limits of each agent.', {
    memoryMb: integer(1024, 1_048_576).default(2048).describe('memory'),
    cpus: z.coerce.number().min(0.1).max(256).default(2).describe('processors'),
    pids: integer(64, 32_768).default(512).describe('processes and threads'),
    diskMb: integer(64, 1_048_576)
      .default(10_240)
      .describe(
        'disk, if its plan has no limit of its own. With BERTH_DISKS_SOCKET it is a hard limit. Without, Berth measures usage every ten seconds (a large home less often, so that measuring takes at most a fiftieth of the time) and stops an agent that exceeds it',
      ),
    consoleSeconds: seconds(0.1, 3600).default(60).describe('a console command that runs longer is killed'),
    consoleBytes: integer(1024, 1_073_741_824)
      .default(1_048_576)
      .describe('output of a console command that is kept'),
    fileBytes: integer(1, 268_435_456)
      .default(8_388_608)
      .describe('largest file that can be uploaded to or read from it'),
  }),
  BERTH_DISKS_SOCKET: socketPath
    .optional()
    .describe(
      'Unix socket of the disk helper (role `disks`), in a folder that only it and `worker` can access. Set: new agents in Docker get a disk with a hard limit. Not set: disk usage is measured.',
    ),
  BERTH_DISKS_DIR: text
    .transform((dir) => resolve(dir))
    .default('/var/lib/berth-disks')
    .describe(
      "Folder of the disk helper, with the image of the disks. It must be on Docker's machine, at the same path.",
    ),
  BERTH_DISKS_MB: integer(256, 1_073_741_824)
    .optional()
    .describe(
      'Size of the image with the disks of all agents, which is allocated at once. A larger value later makes the image grow.',
    ),
  BERTH_DISKS_DEVICE: text
    .regex(/^\//, 'must be the path of a device')
    .optional()
    .describe('Device with your own btrfs file system, instead of an image.'),
  BERTH_AGENT_READY_SECONDS: seconds(1, 3600)
    .default(180)
    .describe('A gateway that is not ready within this time counts as failed.'),
  BERTH_STOP_AGENTS: flag
    .default(false)
    .describe(
      'Whether a worker that shuts down stops the agents on its machine; the next start brings them up again. `npm start` sets it.',
    ),
  BERTH_SNAPSHOT_NETWORK: z
    .enum(['public', 'private', 'none'])
    .default('private')
    .describe('IPFS network on which snapshots of agents are pinned; `none` disables snapshots.'),
  BERTH_SNAPSHOT_KEEP: group("Which of an agent's snapshots are kept.", {
    newest: integer(1, 100_000).default(50).describe('this many of the newest'),
    days: integer(0, 36_500).default(30).describe('in addition, the last one of each of this many days'),
  }),
  BERTH_CLAWHUB_URL: z
    .union([z.literal(''), url('http', 'https')])
    .default('')
    .describe('A skill hub that is offered in addition to the skills that ship with Berth; empty for none.'),
  BERTH_CLAWHUB_DIR: text
    .transform((dir) => resolve(dir))
    .optional()
    .describe(
      'Folder of skills (`<owner>/<name>/SKILL.md`) that the hub offers in addition to those that ship with Berth.',
    ),
  BERTH_GIT_ALLOW: list
    .default([])
    .describe(
      'host:port pairs from which templates may be fetched although their addresses are private, also over http. All other repositories must be public and use https.',
    ),
  BERTH_APP_DOMAIN: text
    .toLowerCase()
    .regex(/^[a-z0-9-]+(\.[a-z0-9-]+)*$/, 'must be a host name')
    .default('apps.localhost')
    .describe(
      "Agents' own pages are served at <subdomain>.<this domain>, and custom domains point there. Point a wildcard DNS record at the web process. Must be another site than the API's if browsers sign in there.",
    ),
  BERTH_DNS_SERVER: text
    .regex(/^[\da-f.:[\]]+$/i, 'must be an IP address, with a port if it is not 53')
    .optional()
    .describe("DNS server for checks of custom domains. Not set: the machine's DNS servers."),
  BERTH_TELEGRAM_URL: z
    .union([z.literal(''), url('http', 'https')])
    .default('https://api.telegram.org')
    .describe('Bot API that verifies bot tokens; empty for none.'),
  BERTH_PLATFORM_TOKEN_SCOPE: z
    .enum(['agent', 'workspace'])
    .default('agent')
    .describe(
      'Scope of the token that an agent mints for itself: its agent, or its workspace. With the workspace, the agent sees all agents, creates agents, secrets and templates, installs skills, and attaches secrets to itself.',
    ),
  BERTH_MODEL_URL: z
    .union([z.literal(''), url('http', 'https')])
    .optional()
    .describe(
      'OpenAI-compatible URL of the default model for all agents, ending in /v1. Not set: `npm start` looks for Ollama, LM Studio and llama.cpp on this machine, and other starts have no default model; empty for none.',
    ),
  BERTH_MODEL: text
    .default('default')
    .describe('Name of the default model at BERTH_MODEL_URL, or on the server that `npm start` finds.'),
  BERTH_MODEL_KEY: text
    .optional()
    .describe('Key for BERTH_MODEL_URL. Only `web` and `agent-proxy` ever have it; agents use virtual keys.'),
  BERTH_MODEL_CONTEXT: integer(1024, 100_000_000)
    .default(128_000)
    .describe('Context window of the default model, in tokens.'),
  BERTH_MODEL_FALLBACK_URL: url('http', 'https')
    .optional()
    .describe(
      'OpenAI-compatible URL, ending in /v1, that gets calls of the default model if BERTH_MODEL_URL cannot be reached, returns 429, or fails twice.',
    ),
  BERTH_MODEL_FALLBACK: text.default('default').describe('Name of the model at BERTH_MODEL_FALLBACK_URL.'),
  BERTH_MODEL_FALLBACK_KEY: text
    .optional()
    .describe('Key for BERTH_MODEL_FALLBACK_URL. Agents never have it.'),
  BERTH_AGENT_PROXY_SOCKET: socketPath
    .optional()
    .describe(
      'Unix socket for the agent proxy’s tunnels, instead of a port. Must be the same for `web`, `worker` and `agent-proxy`, in a folder that they share. `npm start` uses one under BERTH_DATA_DIR unless BERTH_AGENT_PROXY_URL or BERTH_AGENT_PROXY_PORT is set.',
    ),
  BERTH_AGENT_PROXY_URL: url('http')
    .optional()
    .describe(
      'URL at which `web` and `worker` reach the agent proxy. Not set: BERTH_AGENT_PROXY_SOCKET, or BERTH_AGENT_PROXY_PORT on this machine.',
    ),
  BERTH_AGENT_PROXY_PORT: integer(0, 65535)
    .optional()
    .describe(
      'Port for the agent proxy’s tunnels, if BERTH_AGENT_PROXY_SOCKET is not set; with 0, `npm start` picks a free port. Not set: 3130.',
    ),
  BERTH_AGENT_PROXY_ADDRESS: text.default('127.0.0.1').describe('Address of the agent proxy.'),
  BERTH_EGRESS_PORT: integer(0, 65535)
    .optional()
    .describe(
      "Port of the agent proxy's egress, which `worker` asks the proxy for; 0 picks a free port at each start. Not set: 3128 if it is free at the first start, otherwise another port. The choice is kept in `egress.port` under BERTH_DATA_DIR, because agents' containers refer to it.",
    ),
  BERTH_EGRESS_HOST: text
    .default('127.0.0.1')
    .describe("Address of the agent proxy's egress, in addition to the networks of agents."),
  BERTH_EGRESS_ALLOW: list
    .default([])
    .describe('host:port pairs that the egress proxy allows although their addresses are private.'),
  BERTH_EGRESS_REFUSE: networks
    .default([])
    .describe(
      "Networks (`address/bits`) that the egress proxy blocks although they are public, such as those of a cluster's nodes.",
    ),
  BERTH_EGRESS_URL: url('http')
    .optional()
    .describe(
      'Where agents reach the egress if there are several agent proxies, as in a cluster: their Service. `worker` resolves a host name in it at startup, because agents cannot resolve names. Required with BERTH_RUNTIME=kubernetes. Each proxy then serves all addresses in BERTH_AGENT_SUBNETS, and needs AGENT_PROXY_KEY. Not set: one proxy, on the machine of the agents.',
    ),
  BERTH_WEB_URL: url('http')
    .optional()
    .describe(
      'Where `agent-proxy` reaches `web`, which it asks about models and egress policies; in a cluster, its Service, which is then required. Calls of agents to Berth on a loopback name (such as PUBLIC_URL while you try Berth through a forwarded port) go there, too. Not set: HOST:PORT.',
    ),
  BERTH_AGENT_PROXY_STOP: group('How an agent proxy stops.', {
    acceptSeconds: seconds(0, 3600)
      .default(0)
      .describe(
        'how long it still accepts connections while /readyz returns 503, so that traffic can move away',
      ),
    drainSeconds: seconds(0, 3600).default(5).describe('how long its connections may take to end after that'),
  }),
}
