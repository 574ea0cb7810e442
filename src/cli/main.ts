/** `npx berth`: terminal commands for operators, with or without a running Berth. */
import { Command, InvalidArgumentError, Option } from 'commander'
import packageJson from '../../package.json' with { type: 'json' }
import { BackupError } from '../backup/store.ts'
import { DatabaseAwayError } from '../db/database-errors.ts'
import { ApiError, ConfigError, SandboxError } from '../errors.ts'
import { isScope, SCOPES } from '../http/principal.ts'
import { visibleText } from '../http/shapes.ts'
import { type Keep, parseKeep } from '../lib/keep.ts'
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

// Each command loads the slow modules that only it needs.
const doctor = async () => (await import('./doctor.ts')).doctor()
const engineCommands = () => import('./engines.ts')
const feedbackCommands = () => import('./feedback.ts')
const backupCommands = () => import('./backup.ts')
const collectGarbage = async (options: { dryRun?: boolean }) =>
  (await import('./gc.ts')).collectGarbage(options)

const berth = new Command('berth').description(packageJson.description).version(packageJson.version)
const inWorkspace = () => new Option('-w, --workspace <name|id>', 'the workspace').default('default')
const asJson = () => new Option('--json', 'print JSON')

const keys = berth.command('keys').description('API keys, the secrets key, and tokens of agents')
keys
  .command('create')
  .description('create a key and print its token, once')
  .addOption(inWorkspace())
  .option('-n, --name <name>', 'the purpose of the key', parseName, 'cli')
  .option('-s, --scopes <list>', `comma separated, of: ${SCOPES.join(', ')}`, parseScopes, ['admin'])
  .option('-e, --expires <when>', 'a date (2027-01-31), or a time from now (90d, 12h, 30m)', parseExpiry)
  .option('-u, --user <name>', 'the user it acts for; default: the workspace’s owner')
  .addOption(asJson())
  .action(createKey)
keys.command('list').description('list keys').addOption(inWorkspace()).addOption(asJson()).action(listKeys)
keys.command('revoke').description('revoke a key').argument('<id>', 'its id').action(revokeKey)
keys
  .command('rotate-secrets')
  .description('re-encrypt secrets from SECRETS_KEY_PREVIOUS with SECRETS_KEY')
  .action(async () => (await import('./rotate.ts')).runRotateSecrets())
keys
  .command('rotate-agent-tokens')
  .description('give agents new gateway tokens and restart them; old tokens stop working at once')
  .option('-w, --workspace <name|id>', 'only agents of this workspace')
  .option('-a, --agent <id>', 'only this one')
  .option('--resume <time>', 'resume the rotation that began at this time', parseTime)
  .action(async (options) => (await import('./rotate.ts')).rotateAgentTokens(options))

const workspaces = berth.command('workspaces').description('workspaces')
workspaces
  .command('create')
  .description('create a workspace')
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
  .description('add a user, or change a user’s role')
  .argument('<name>', undefined, parseName)
  .addOption(inWorkspace())
  .addOption(new Option('-r, --role <role>').choices(['owner', 'member', 'viewer']).default('member'))
  .addOption(asJson())
  .action(addUser)
users
  .command('list')
  .description('list users')
  .addOption(inWorkspace())
  .addOption(new Option('--admins', 'list the admins of the instance instead').conflicts('workspace'))
  .addOption(asJson())
  .action(listUsers)
users
  .command('remove')
  .description('remove a user from a workspace; their keys for it stop working')
  .argument('<name>')
  .addOption(inWorkspace())
  .action(removeUser)
users
  .command('admin')
  .description('make a user an admin of the instance; their keys also need an instance scope')
  .argument('<name>')
  .option('--remove', 'revoke the user’s admin rights')
  .action(setAdmin)

berth
  .command('login-link')
  .description('print a link that signs a member in to the dashboard once, within 15 minutes')
  .addOption(inWorkspace())
  .option('-u, --user <name>', 'the member to sign in; default: the workspace’s owner')
  .action(loginLink)

const feedback = berth.command('feedback').description('feedback from users and agents')
feedback
  .command('list', { isDefault: true })
  .description('list feedback, newest first')
  .option('-w, --workspace <name|id>', 'only from this workspace')
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
  .description('list who did what, newest first')
  .option('-w, --workspace <name|id>', 'only in this workspace')
  .option('-u, --user <name>', 'only actions of this user')
  .option('-k, --key <id>', 'only actions with this API key')
  .option('-a, --agent <id>', 'only actions of this agent with its own tokens')
  .option('--action <name>', 'only this action: createKey, signIn, "users add"')
  .option('-r, --resource <path>', 'only this resource and its parts: agents/x7f3k2ab')
  .addOption(
    new Option('--result <result>', 'only actions with this result').choices(['done', 'refused', 'unknown']),
  )
  .option('--from <time>', 'only at or after this time', parseTime)
  .option('--to <time>', 'only before this time', parseTime)
  .option('-n, --limit <count>', 'number of lines in the table', parseCount, 100)
  .option('--json', 'print all matching entries as JSON lines')
  .action(async (options) => (await import('./audit.ts')).printAudit(options))

const engines = berth.command('engines').description('versions of OpenClaw that agents can run')
engines
  .command('list')
  .description('list versions')
  .addOption(asJson())
  .action(async (options) => (await engineCommands()).listEngines(options))
engines
  .command('build')
  .description('build the image of a version, or install it, before the first agent needs it')
  .argument('<version>', 'for example 2026.9.6')
  .option('--push', 'for clusters, without Docker: push the image BERTH_ENGINE_IMAGE to its registry')
  .addOption(new Option('--output <file>', 'the same, but write an archive').conflicts('push'))
  .addOption(
    new Option('--platform <platform>', 'platform of the image for --push or --output')
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
  .description('copy all of Berth to a folder or a bucket while it runs')
  .argument('<target>', 'a folder of backups (created if missing), or s3://bucket/prefix')
  .option('--with-keys', 'include the keys, encrypted with BERTH_BACKUP_PASSPHRASE')
  .option(
    '--keep <list>',
    'then keep only the last backup of so many days, weeks and months: 7d,4w,12m',
    parseKept,
  )
  .option('--recheck', 're-read every block in the backup and repair bad ones')
  .action(async (target, options) => (await backupCommands()).runBackup(target, options))
backups
  .command('verify')
  .description('check that backups are complete and undamaged; exit code 1 if not')
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
  .description('restore a backup into an empty Berth, or a part of it into any; Berth must not run')
  .argument('<target>', 'the folder of backups, or s3://bucket/prefix')
  .option('--backup <name>', 'one of `berth backup list`; default: the newest')
  .addOption(
    new Option(
      '--workspace <name>',
      'restore only this workspace, by name or id; it must not exist here',
    ).conflicts('agent'),
  )
  .option('--agent <id>', 'restore only this agent; it must not exist here, or must be deleted')
  .option('--without-keys', 'continue if the keys of the backup are missing: what they encrypt is lost')
  .option('--without-homes', 'leave the homes of agents here unchanged')
  .action(async (target, options) => (await backupCommands()).runRestore(target, options))
berth
  .command('gc')
  .description('free the space of unreferenced content on both IPFS networks')
  .option('--dry-run', 'only report how much that would free')
  .action(collectGarbage)
berth
  .command('storage')
  .description('check what the IPFS nodes keep')
  .command('verify')
  .description('read every block that files and agents need; exit code 1 if something is missing or damaged')
  .option('--network <network>', 'only this network: public or private')
  .action(async (options) => (await import('./storage.ts')).verifyStorage(options))
berth
  .command('migrate')
  .description('bring the database schema up to date')
  .option('--check', 'only report what that changes and locks; exit code 1 if migrations are pending')
  .action(runMigrate)
berth
  .command('health')
  .description('check the process on this machine or in this container; exit code 1 if it cannot work')
  .argument('[parts...]', 'parts that must be ok, for example docker')
berth.command('doctor').description('check each component and advise on problems').action(doctor)

try {
  await berth.parseAsync()
} catch (error) {
  const expected = [ApiError, BackupError, ConfigError, SandboxError, DatabaseAwayError].some(
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

/** By the same rules as the API. */
function parseName(text: string): string {
  const { data, error } = visibleText(255).safeParse(text)
  if (error) throw new InvalidArgumentError(error.issues[0]?.message ?? '')
  return data
}

function parseCount(text: string): number {
  if (!/^[1-9]\d{0,5}$/.test(text)) throw new InvalidArgumentError('must be a whole number, at least 1')
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
