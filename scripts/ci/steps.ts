/**
 * The steps of CI. The embedded suites always run; those on real parts, and most pages of the dashboard, in turn. The
 * steps of a chain run in order; chains run in parallel.
 */
import type { Step } from './step.ts'
import type { StepInTurn } from './turns.ts'

const CONTRACT = '--test-global-setup=test/contract/setup.ts'
const ONE = 'node --test --test-concurrency=1'
const TWO = 'node --import ./test/support/async-context.ts --test --test-timeout=600000 --test-concurrency=2'

/** Whether a contract test uses Kubo, Redis or Docker: the others prove nothing new on real parts. */
const WITHOUT_PARTS =
  'alerts|analytics|audit|auth|body|entries|events|feedback|files|files-update|foreign-ids|gateways|group-members|groups|headers|idempotency|keys|malformed|pin-list|psa-list|sessions|sessions-moved|usage|webhooks|webhooks-sent'

/** Tests of agents that start engines of their own, most of which take 15 CPU-seconds; the others share one agent. */
const CREATED = 'backup|fork|late-engine|lifecycle|pool'
const CONFIGURED = 'channels|config|engine-failures|live-secrets|models'
/** Every user of the dashboard needs these; its other pages take turns. */
const MAIN_PAGES = 'dashboard|files|signin'
/** Tests against one Berth that they share. */
const SHARED = `${TWO} ${CONTRACT}`

/** The README's test command, before everything else but checks of the code, which use what it leaves idle. */
export const FIRST: Step[][] = [
  [
    {
      name: 'npm test on a bare machine',
      run: 'scripts/ci/bare.sh "$CI_DIR/bare" "$(id -un)" sh -c "npm install && npm test"',
    },
  ],
  [
    { name: 'check', run: 'npm run check' },
    { name: 'unused code', run: 'npm run unused', needs: ['dashboard'] },
    { name: 'bundle of the command line', run: 'npm run build:cli -- --check' },
    { name: 'regular expressions', run: 'npm run regexes' },
    { name: 'audit of the tree', run: '.ci/tree' },
  ],
]

/** The largest is the first one. */
export const ALWAYS: Step[][] = [
  [{ name: 'processes', run: 'npm run test:processes' }],
  [{ name: 'storage', run: 'npm run test:storage', needs: ['servers'] }],
  [
    {
      name: 'dashboard',
      run: `npm run --prefix dashboard check && ${SHARED} dashboard/test/@(${MAIN_PAGES}).test.ts`,
      needs: ['browser', 'dashboard'],
    },
  ],
  [{ name: 'first start on a bare machine', run: '.ci/first-start "$CI_DIR/bare"', needs: ['servers'] }],
]

/** The move of a Berth into a cluster takes too long: `berth in a cluster` skips it by its name. */
export const BY_HAND = ['test/integration/kubernetes/chart-move.test.ts']

/** Tests of agentd that start the real engine most often. */
const ENGINE_STARTS = 'engine|refusals'

const TORTURE_OF_AGENTS = 'agents|backup|disks|models|pool|rolling-upgrade|workspaces'
const TORTURE = `${TWO} --test-global-setup=test/torture/setup.ts`
/**
 * Pins and uploads on one of the two backends and in S3, agents on the other, each at a sixth of the crash points, with
 * a different selection in each run.
 */
const TORTURE_SETTINGS = {
  BERTH_TORTURE_DOCKERD: '1',
  BERTH_TORTURE_BACKEND: 'redis',
  BERTH_TORTURE_SHARE: '6',
}

const CLUSTER = 'scripts/ci/kubernetes/with.sh'
const STACK = 'scripts/ci/compose.sh'
const DOCKER_TOOLS = ['servers', 'btrfs', 'docker', 'base', 'engines', 'kubo']

export const IN_TURN: StepInTurn[] = [
  {
    name: 'containers, images and walls on docker',
    run: `${ONE} 'test/integration/sandboxes/docker*.test.ts' test/integration/openclaw/image.test.ts \
      test/integration/openclaw/{docker-tidy,cluster-image}.test.ts test/integration/agentd/full-disk.test.ts \
      test/integration/agents/docker.test.ts test/integration/sandboxes/open.test.ts \
      'test/integration/isolation/*.test.ts'`,
    needs: [...DOCKER_TOOLS, 'registry'],
    containers: ['docker'],
    paths: ['src/sandboxes/docker', 'src/openclaw/image.ts'],
  },
  {
    name: 'contract on real parts',
    run: `${SHARED} test/contract/!(${WITHOUT_PARTS}|*.processes).test.ts \
      test/contract/{full-disk,full-disk-parts,outage,tus-outage,tus-aborted,uploads-quota,settings}.processes.test.ts \
      test/contract/{command-line,gateway-serving-memory,gc}.processes.test.ts`,
    env: { BERTH_TEST_STACK: 'real' },
    needs: DOCKER_TOOLS,
    containers: ['docker'],
    paths: ['src/storage/kubo'],
  },
  {
    name: 'agents in docker',
    run: `${SHARED} test/contract/openclaw/{lifecycle,console,terminal,files,snapshots,git,ports}.test.ts \
      test/contract/openclaw/{live-skills,egress,brokered,a2a}.test.ts`,
    env: { BERTH_TEST_STACK: 'real' },
    needs: DOCKER_TOOLS,
    containers: ['docker'],
    paths: ['src/sandboxes/docker'],
  },
  {
    name: 'pins on kubo, queue and limits on redis',
    run: `${TWO} test/integration/files/psa-kubo.test.ts test/integration/vhosts/stream.test.ts \
      test/integration/agents/restore.test.ts test/integration/operations/{queue,redis}.test.ts \
      test/integration/http/rate-limit.test.ts`,
    needs: ['servers', 'kubo'],
    paths: ['src/storage/kubo', 'src/operations/queue'],
  },
  {
    name: 'storage in kubo',
    run: `${TWO} test/integration/storage/{kubo,kubo-collect,kubo-full-disk,moving,snapshots}.test.ts`,
    needs: ['servers', 'kubo'],
    paths: ['src/storage/kubo', 'test/integration/storage/cases'],
  },
  {
    name: 'pins in an ipfs cluster',
    run: `${ONE} 'test/integration/storage/cluster*.test.ts'`,
    needs: ['servers', 'kubo', 'ipfsCluster'],
    paths: ['src/storage/cluster'],
  },
  {
    name: 'failover of postgresql, redis and valkey, and pgbouncer',
    run: `${ONE} --test-global-setup=test/torture/setup.ts 'test/failover/*.test.ts'`,
    needs: ['servers', 'pgbouncer', 'valkey'],
    paths: ['test/failover'],
  },
  {
    name: "statements on the distribution's postgresql",
    run: `${TWO} 'test/integration/db/*.test.ts'`,
    env: { BERTH_TEST_STACK: 'real' },
    needs: ['servers'],
    paths: ['prisma/migrations'],
  },
  {
    name: 'the stack of docker-compose.yml',
    run: `${STACK} ${ONE} 'test/compose/*.test.ts'`,
    within: STACK,
    needs: ['images'],
    containers: ['berth-ci'],
    paths: ['docker-compose.yml', 'Dockerfile'],
  },
  {
    name: 'backup and restore',
    run: 'npm run test:backup',
    needs: ['servers', 'engines', 'kubo', 's3'],
    isFinal: true,
    paths: ['src/backup'],
  },
  {
    name: 'blocks and uploads in s3',
    run: `${ONE} 'test/integration/storage/bucket*.test.ts' test/integration/files/tus-bytes.test.ts \
      test/contract/tus-bucket.processes.test.ts`,
    needs: ['servers', 's3'],
    paths: ['src/storage/embedded/bucket'],
  },
  {
    name: 'resumable uploads with blocks in s3',
    run: `${ONE} test/contract/tus.test.ts`,
    env: { BERTH_TEST_BLOCKS: 's3' },
    needs: ['servers', 's3'],
    paths: ['src/storage/embedded/bucket'],
  },
  {
    name: 'tls on caddy',
    run: 'npm run test:tls',
    needs: ['servers', 'caddy', 'engines'],
    paths: ['deploy/caddy'],
  },
  { name: 'alert rules', run: 'scripts/ci/prometheus.sh', paths: ['deploy/prometheus'] },
  {
    name: 'berth in a cluster',
    run: `${CLUSTER} ${ONE} --test-skip-pattern='an agent that ran elsewhere' \
      test/integration/kubernetes/chart{,-move,-network,-templates}.test.ts`,
    within: CLUSTER,
    needs: [...DOCKER_TOOLS, 'kubernetes', 'helm', 'registry'],
    containers: ['berth-k8s-0', 'docker'],
    paths: ['deploy/chart'],
  },
  {
    name: 'uploads and engine images in a cluster',
    run: `${CLUSTER} ${ONE} test/integration/kubernetes/{chart-uploads,engine-image}.test.ts`,
    within: CLUSTER,
    needs: [...DOCKER_TOOLS, 'kubernetes', 'helm', 'registry', 's3'],
    containers: ['berth-k8s-0', 'docker'],
    paths: ['deploy/chart', 'src/openclaw/image.ts'],
  },
  {
    name: 'torture of pins and uploads',
    run: `${TORTURE} test/torture/!(${TORTURE_OF_AGENTS}).test.ts`,
    env: TORTURE_SETTINGS,
    needs: ['servers', 'kubo', 's3'],
    isFinal: true,
    paths: ['test/torture'],
  },
  {
    name: 'torture of agents and upgrades',
    run: `${TORTURE} test/torture/@(${TORTURE_OF_AGENTS}).test.ts`,
    env: TORTURE_SETTINGS,
    needs: [...DOCKER_TOOLS, 's3'],
    containers: ['docker'],
    isFinal: true,
    paths: ['test/torture'],
  },
  {
    name: 'agents in a cluster',
    // With BERTH_TEST_STACK=kubernetes, contract tests of agents run in a cluster as well. A file takes up to eight
    // minutes of processor time, so run them by hand: test/contract/openclaw/{brokered,terminal}.test.ts.
    run: `${CLUSTER} ${ONE} test/integration/kubernetes/{cluster,driver,killed,open-network,states,walls}.test.ts`,
    within: CLUSTER,
    needs: [...DOCKER_TOOLS, 'kubernetes'],
    containers: ['berth-k8s-0', 'docker'],
    paths: ['src/sandboxes/kubernetes', 'deploy/kubernetes', 'scripts/ci/kubernetes'],
  },
  {
    name: 'clients of others',
    run: `${ONE} 'test/clients/*.test.ts'`,
    needs: ['servers', 'engines', 'kubo'],
    paths: ['clients', 'test/clients'],
  },
  {
    name: 'demo of agents in docker',
    run: 'npm run demo:agent -- --runtime docker',
    needs: DOCKER_TOOLS,
    containers: ['docker'],
    show: 24,
    paths: ['scripts/demo-agent.ts'],
  },
  {
    name: 'demo of a budget in docker',
    run: 'npm run demo:budget -- --runtime docker',
    needs: DOCKER_TOOLS,
    containers: ['docker'],
    show: 24,
    paths: ['scripts/demo-budget.ts'],
  },
  {
    name: 'demo of forks in docker',
    run: 'npm run demo:fork -- --runtime docker',
    needs: DOCKER_TOOLS,
    containers: ['docker'],
    show: 24,
    paths: ['scripts/demo-fork.ts', 'workers/agents'],
  },
  {
    name: 'demo of a brokered secret in docker',
    run: 'npm run demo:keys -- --runtime docker',
    needs: DOCKER_TOOLS,
    containers: ['docker'],
    show: 24,
    paths: ['scripts/demo-keys.ts'],
  },
  {
    name: 'an agent on openclaw',
    run: `${SHARED} test/contract/openclaw/!(${CREATED}|${CONFIGURED}).test.ts`,
    needs: ['engines', 'servers'],
    paths: ['src/openclaw', 'agentd', 'test/contract/openclaw'],
  },
  {
    name: 'pages of the dashboard',
    run: `${SHARED} dashboard/test/!(${MAIN_PAGES}).test.ts`,
    needs: ['browser', 'dashboard', 'engines'],
    paths: ['dashboard', 'clients/typescript/src/schema.ts'],
  },
  {
    name: 'dashboard of an agent on openclaw',
    run: `${SHARED} dashboard/test/openclaw/*.test.ts`,
    needs: ['browser', 'dashboard', 'engines'],
    paths: ['dashboard/src', 'dashboard/test/openclaw'],
  },
  {
    name: 'creation of agents on openclaw',
    run: `${SHARED} test/contract/openclaw/@(${CREATED}).test.ts`,
    needs: ['engines', 'servers'],
    paths: ['src/openclaw', 'agentd', 'workers/agents'],
  },
  {
    name: 'configuration of agents on openclaw',
    run: `${SHARED} test/contract/openclaw/@(${CONFIGURED}).test.ts`,
    needs: ['engines', 'servers'],
    paths: ['src/openclaw', 'agentd', 'workers/agents'],
  },
  {
    name: 'starts of the real engine',
    run: `${TWO} test/engine/@(${ENGINE_STARTS}).test.ts`,
    needs: ['engines'],
    paths: ['src/openclaw', 'agentd'],
  },
  {
    name: 'calls of the real engine',
    run: `${TWO} test/engine/!(${ENGINE_STARTS}).test.ts`,
    needs: ['engines'],
    paths: ['src/openclaw', 'agentd'],
  },
]

/** Compares the contract page with the tests that passed, including second tries. */
export const LAST: Step[] = [
  {
    name: 'page of the contract',
    run: 'node test/contract/report/write.ts --check "$CI_DIR"/*/records/*.jsonl',
  },
]
