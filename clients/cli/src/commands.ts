/** All commands, in the order of the help. */
import type { Command } from './command.ts'
import { agentFileCommands } from './commands/agent-files.ts'
import { agentSecretCommands } from './commands/agent-secrets.ts'
import { agentTaskCommands } from './commands/agent-tasks.ts'
import { agentCommands } from './commands/agents.ts'
import { apiCommands } from './commands/api.ts'
import { chatCommands } from './commands/chat.ts'
import { completionCommands } from './commands/completion.ts'
import { consoleCommands } from './commands/console.ts'
import { eventCommands } from './commands/events.ts'
import { fileCommands } from './commands/files.ts'
import { groupCommands } from './commands/groups.ts'
import { operationCommands } from './commands/operations.ts'
import { filePinCommands } from './commands/pins.ts'
import { profileCommands } from './commands/profiles.ts'
import { snapshotCommands } from './commands/snapshots.ts'
import { spendingCommands } from './commands/spending.ts'
import { transferCommands } from './commands/transfer.ts'
import { webhookCommands } from './commands/webhooks.ts'

export const COMMANDS: Command[] = [
  ...profileCommands,
  ...agentCommands,
  ...chatCommands,
  ...consoleCommands,
  ...agentFileCommands,
  ...agentTaskCommands,
  ...agentSecretCommands,
  ...snapshotCommands,
  ...fileCommands,
  ...transferCommands,
  ...filePinCommands,
  ...groupCommands,
  ...operationCommands,
  ...eventCommands,
  ...webhookCommands,
  ...spendingCommands,
  ...apiCommands,
  ...completionCommands,
]
