/** `npx berth`: what an operator does at a terminal, beside a running Berth or without one. */
import { Command, InvalidArgumentError, Option } from 'commander'
import packageJson from '../../package.json' with { type: 'json' }
import { BackupError } from '../backup/store.ts'
import { DatabaseAwayError } from '../db/database-errors.ts'
import { ApiError, ConfigError } from '../errors.ts'
import { isScope, SCOPES } from '../http/principal.ts'
import { visibleText } from '../http/shapes.ts'
import { type Keep, parseKeep } from '../lib/keep.ts'
import { EngineError } from '../openclaw/engine-error.ts'
import { SandboxError } from '../sandboxes/port.ts'
import {
  addUser,
  createKey,
  createWorkspaceCommand,
  listKeys,
  listUsers,
  listWorkspacesCommand,
  loginLink,
  removeUser,
  revokeKey,
  setAdmin,
  setPlanCommand,
} from './accounts.ts'
import { runMigrate } from './migrate.ts'

// A module that only one command needs, and that is slow to load, is loaded by that command.
const doctor = async () => (await import('./doctor.ts')).doctor()
const engineCommands = () => import('./engines.ts')
const feedbackCommands = () => import('./feedback.ts')
const backupCommands = () => import('./backup.ts')
const collectGarbage = async (options: { dryRun?: boolean }) =>
  (await import('./gc.ts')).collectGarbage(options)

const berth = new Command('berth').description(packageJson.description).version(packageJson.version)
const inWorkspace = () => new Option('-w, --workspace <name|id>', 'the workspace').default('default')
const asJson = () => new Option('--json', 'print JSON')

const keys = berth.command('keys').description('API keys, the key of secrets, and tokens of agents')
keys
  .command('create')
  .description('make a key and print its token, once')
  .addOption(inWorkspace())
  .option('-n, --name <name>', 'what the key is for', parseName, 'cli')
  .option('-s, --scopes <list>', `comma separated, of: ${SCOPES.join(', ')}`, parseScopes, ['admin'])
  .option('-e, --expires <when>', 'a date (2027-01-31), or a time from now (90d, 12h, 30m)', parseExpiry)
  .option('-u, --user <name>', 'the user it acts for; the workspace’s owner unless told')
  .addOption(asJson())
  .action(createKey)
keys.command('list').description('list keys').addOption(inWorkspace()).addOption(asJson()).action(listKeys)
keys.command('revoke').description('revoke a key').argument('<id>', 'its id').action(revokeKey)
keys
  .command('rotate-secrets')
  .description('encrypt with SECRETS_KEY what SECRETS_KEY_PREVIOUS encrypted')
  .action(async () => (await import('./rotate.ts')).runRotateSecrets())
keys
  .command('rotate-agent-tokens')
  .description('give agents new gateway tokens, and restart them; the old ones end at once')
  .option('-w, --workspace <name|id>', 'only those of a workspace')
  .option('-a, --agent <id>', 'only this one')
  .option('--resume <time>', 'go on with the rotation that was begun then', parseTime)
  .action(async (options) => (await import('./rotate.ts')).rotateAgentTokens(options))

const workspaces = berth.command('workspaces').description('workspaces')
workspaces
  .command('create')
  .description('make a workspace')
  .argument('<name>', undefined, parseName)
  .option('-p, --plan <plan>', 'free, pro or unlimited', 'free')
  .option('-o, --owner <user>', 'the user who owns it', parseName, 'owner')
  .addOption(asJson())
  .action(createWorkspaceCommand)
workspaces.command('list').description('list workspaces').addOption(asJson()).action(listWorkspacesCommand)
workspaces
  .command('set-plan')
  .description('put a workspace on another plan, at once')
  .argument('<name>', 'its name or id')
  .argument('<plan>', 'free, pro or unlimited')
  .action(setPlanCommand)

const users = berth.command('users').description('users of a workspace')
users
  .command('add')
  .description('add a user, or change the role of one')
  .argument('<name>', undefined, parseName)
  .addOption(inWorkspace())
  .addOption(new Option('-r, --role <role>').choices(['owner', 'member', 'viewer']).default('member'))
  .addOption(asJson())
  .action(addUser)
users
  .command('list')
  .description('list users')
  .addOption(inWorkspace())
  .addOption(new Option('--admins', 'the admins of the instance instead').conflicts('workspace'))
  .addOption(asJson())
  .action(listUsers)
users
  .command('remove')
  .description('take a user out of a workspace; their keys of it stop working')
  .argument('<name>')
  .addOption(inWorkspace())
  .action(removeUser)
users
  .command('admin')
  .description('make a user an admin of the instance; their keys need a scope of it as well')
  .argument('<name>')
  .option('--remove', 'take it from them')
  .action(setAdmin)

berth
  .command('login-link')
  .description('print a link that signs a member in to the dashboard once, within 15 minutes')
  .addOption(inWorkspace())
  .option('-u, --user <name>', 'who; the workspace’s owner unless told')
  .action(loginLink)

const feedback = berth.command('feedback').description('what users and agents tell the operator')
feedback
  .command('list', { isDefault: true })
  .description('list it, the newest first')
  .option('-w, --workspace <name|id>', 'only that of a workspace')
  .option('-n, --limit <count>', 'how many', parseCount, 100)
  .addOption(asJson())
  .action(async (options) => (await feedbackCommands()).listFeedbackCommand(options))
feedback
  .command('remove')
  .description('remove one message')
  .argument('<id>', 'its id')
  .action(async (id) => (await feedbackCommands()).removeFeedbackCommand(id))

berth
  .command('audit')
  .description('list who did what, the newest first')
  .option('-w, --workspace <name|id>', 'only in a workspace')
  .option('-u, --user <name>', 'only what a user did')
  .option('-k, --key <id>', 'only what was done with an API key')
  .option('-a, --agent <id>', 'only what an agent did with its tokens')
  .option('--action <name>', 'only this action: createKey, signIn, "users add"')
  .option('-r, --resource <path>', 'only this resource and its parts: agents/x7f3k2ab')
  .addOption(new Option('--result <result>', 'only what ended so').choices(['done', 'refused', 'unknown']))
  .option('--from <time>', 'only from this time on', parseTime)
  .option('--to <time>', 'only before this time', parseTime)
  .option('-n, --limit <count>', 'how many lines of the table', parseCount, 100)
  .option('--json', 'print all that fit as JSON lines')
  .action(async (options) => (await import('./audit.ts')).printAudit(options))

const engines = berth.command('engines').description('versions of OpenClaw that agents can run')
engines
  .command('list')
  .description('list versions')
  .addOption(asJson())
  .action(async (options) => (await engineCommands()).listEngines(options))
engines
  .command('build')
  .description('build the image of a version, or install it, ahead of the first agent that needs it')
  .argument('<version>', 'for example 2026.9.6')
  .option('--push', 'for clusters, without Docker: write the image BERTH_ENGINE_IMAGE into its registry')
  .addOption(new Option('--output <file>', 'the same, into an archive').conflicts('push'))
  .addOption(
    new Option('--platform <platform>', 'what the image of --push or --output is for')
      .choices(['linux/amd64', 'linux/arm64'])
      .default(process.arch === 'arm64' ? 'linux/arm64' : 'linux/amd64'),
  )
  .action(async (version, options) => (await engineCommands()).buildEngine(version, options))
engines
  .command('remove')
  .description('remove a version that no agent runs')
  .argument('<version>')
  .action(async (version) => (await engineCommands()).removeEngine(version))

const backups = berth
  .command('backup')
  .description('copy all of Berth into a folder or a bucket, while it runs')
  .argument('<target>', 'a folder of backups, made where there is none, or s3://bucket/prefix')
  .option('--with-keys', 'put the keys into it, encrypted with BERTH_BACKUP_PASSPHRASE')
  .option(
    '--keep <list>',
    'then remove all backups but the last of so many days, weeks and months: 7d,4w,12m',
    parseKept,
  )
  .option('--recheck', 'read what is there once more, and repair it')
  .action(async (target, options) => (await backupCommands()).runBackup(target, options))
backups
  .command('verify')
  .description('look whether backups have all that they should; exit code 1 when they do not')
  .argument('<target>')
  .action(async (target) => (await backupCommands()).runVerify(target))
backups
  .command('list')
  .description('list the backups of a folder or a bucket')
  .argument('<target>')
  .addOption(asJson())
  .action(async (target, options) => (await backupCommands()).runList(target, options))
berth
  .command('restore')
  .description('bring a backup into a Berth that is empty, or a part of it into any; Berth must not run')
  .argument('<target>', 'the folder of backups, or s3://bucket/prefix')
  .option('--backup <name>', 'one of `berth backup list`; the newest unless told')
  .addOption(
    new Option('--workspace <name>', 'only this workspace, by its name or id, where it is not').conflicts(
      'agent',
    ),
  )
  .option('--agent <id>', 'only this agent, where it is not, or was deleted')
  .option('--without-keys', 'go on where the keys of the backup are missing: what they open is lost')
  .option('--without-homes', 'leave the homes of agents as they are here')
  .action(async (target, options) => (await backupCommands()).runRestore(target, options))
berth
  .command('gc')
  .description('free the space of what nothing keeps any more, on both IPFS networks')
  .option('--dry-run', 'only say how much that would be')
  .action(collectGarbage)
berth
  .command('migrate')
  .description('bring the database schema up to date')
  .option('--check', 'only say what that changes and locks; exit code 1 when there is something to do')
  .action(runMigrate)
berth
  .command('health')
  .description('ask the process of this machine or container how it is; exit code 1 when it cannot work')
  .argument('[parts...]', 'parts that have to be ok, for example docker')
berth.command('doctor').description('check each part and say what to do').action(doctor)

try {
  await berth.parseAsync()
} catch (error) {
  const expected = [ApiError, BackupError, ConfigError, SandboxError, DatabaseAwayError, EngineError].some(
    (type) => error instanceof type,
  )
  if (!expected) throw error
  console.error((error as Error).message)
  process.exitCode = 1
}

function parseScopes(text: string): string[] {
  const scopes = text
    .split(',')
    .map((scope) => scope.trim())
    .filter(Boolean)
  const unknown = scopes.filter((scope) => !isScope(scope))
  if (unknown.length > 0) throw new InvalidArgumentError(`unknown: ${unknown.join(', ')}`)
  if (scopes.length === 0) throw new InvalidArgumentError('name at least one')
  return scopes
}

/** By the rules of the API. */
function parseName(text: string): string {
  const { data, error } = visibleText(255).safeParse(text)
  if (error) throw new InvalidArgumentError(error.issues[0]?.message ?? '')
  return data
}

function parseCount(text: string): number {
  if (!/^[1-9]\d{0,5}$/.test(text)) throw new InvalidArgumentError('must be a whole number from 1 on')
  return Number(text)
}

function parseKept(text: string): Keep {
  const keep = parseKeep(text)
  if (!keep) throw new InvalidArgumentError('must be like 7d,4w,12m')
  return keep
}

function parseTime(text: string): Date {
  const when = new Date(text)
  if (Number.isNaN(when.getTime())) throw new InvalidArgumentError('not a time')
  return when
}

function parseExpiry(text: string): Date {
  const [, amount, unit] = /^(\d{1,6})([smhd])$/.exec(text) ?? []
  const ms = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }[unit ?? '']
  const when = amount && ms ? new Date(Date.now() + Number(amount) * ms) : new Date(text)
  if (Number.isNaN(when.getTime())) throw new InvalidArgumentError('neither a date nor a time like 90d')
  if (when.getTime() <= Date.now()) throw new InvalidArgumentError(`${when.toISOString()} is over`)
  return when
}
