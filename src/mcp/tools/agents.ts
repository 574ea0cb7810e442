/** Tools that create, read and change agents. */
import { routeTool, type Tool } from '../tool.ts'

export const agentTools: Tool[] = [
  routeTool({
    name: 'agents_list',
    title: 'List agents',
    description:
      'Lists the agents of the workspace, with their ids and states. Start here to find an agentId.',
    route: 'listAgents',
    args: ['limit', 'pageToken'],
    hints: { readOnly: true },
  }),
  routeTool({
    name: 'agents_get',
    title: 'Get an agent',
    description:
      'Returns an agent with its state (and why it does not run), disk usage, skills, names of its secrets, newest ' +
      'snapshots and published ports.',
    route: 'getAgent',
    args: ['agentId'],
    hints: { readOnly: true },
  }),
  routeTool({
    name: 'agents_create',
    title: 'Create an agent',
    description:
      'Creates an AI agent with its own sandbox, workspace and disk, and waits for it to start. A template gives it ' +
      'first files; secretIds and skillCids attach what the workspace already has.',
    route: 'createAgent',
    args: ['name', 'description', 'vibe', 'emoji', 'templateId', 'secretIds', 'skillCids'],
    hints: {},
  }),
  routeTool({
    name: 'agents_delete',
    title: 'Delete an agent',
    description:
      'Deletes an agent with its sandbox and files, for good. Its snapshots on IPFS are removed too.',
    route: 'deleteAgent',
    args: ['agentId'],
    hints: { destructive: true, idempotent: true },
  }),
  routeTool({
    name: 'agents_restart',
    title: 'Restart an agent',
    description:
      'Restarts the gateway of an agent with its current secrets and settings, and runs its start script. Starts an ' +
      'agent that does not run.',
    route: 'restartAgent',
    args: ['agentId', 'version'],
    hints: { destructive: true },
  }),
  routeTool({
    name: 'agents_logs',
    title: 'Read the log of an agent',
    description: 'Returns the last lines of the log of an agent: its gateway, scripts and supervisor.',
    route: 'readAgentLogs',
    args: ['agentId'],
    hints: { readOnly: true },
  }),
  routeTool({
    name: 'agents_run_command',
    title: 'Run a command in an agent',
    description:
      'Runs a shell command in the sandbox of an agent, and returns its output and exit code. It is killed if the call ' +
      'is cancelled; `setsid … &` keeps a program running.',
    route: 'execCommand',
    args: ['agentId', 'command', 'cwd'],
    hints: { destructive: true },
  }),
  routeTool({
    name: 'agents_list_files',
    title: 'List a folder of an agent',
    description: 'Lists a folder in the sandbox of an agent. Its workspace is /home/node/clawd/workspace.',
    route: 'listAgentFiles',
    args: ['agentId', 'path'],
    hints: { readOnly: true },
  }),
  routeTool({
    name: 'agents_list_tasks',
    title: 'List the tasks of an agent',
    description: 'Lists the scheduled tasks of an agent.',
    route: 'listTasks',
    args: ['agentId', 'includeDisabled'],
    hints: { readOnly: true },
  }),
  routeTool({
    name: 'agents_create_task',
    title: 'Create a task',
    description:
      'Schedules work for an agent: once (`at`), at an interval (`every`) or by cron. The payload `agentTurn` gives it ' +
      'a message to act on.',
    route: 'createTask',
    args: ['agentId', 'name', 'description', 'enabled', 'schedule', 'payload', 'sessionTarget', 'delivery'],
    hints: {},
  }),
  routeTool({
    name: 'agents_update_task',
    title: 'Change a task',
    description: 'Changes a task, or switches it on or off. What is left out stays unchanged.',
    route: 'updateTask',
    args: ['agentId', 'jobId', 'name', 'description', 'enabled', 'schedule', 'payload', 'delivery'],
    hints: { destructive: true, idempotent: true },
  }),
  routeTool({
    name: 'agents_run_task',
    title: 'Run a task now',
    description: 'Starts a task of an agent at once, whatever its schedule. It runs in the background.',
    route: 'runTask',
    args: ['agentId', 'jobId'],
    hints: {},
  }),
  routeTool({
    name: 'agents_delete_task',
    title: 'Delete a task',
    description: 'Deletes a scheduled task of an agent.',
    route: 'deleteTask',
    args: ['agentId', 'jobId'],
    hints: { destructive: true, idempotent: true },
  }),
  routeTool({
    name: 'agents_snapshot',
    title: 'Save an agent',
    description:
      'Saves the workspace of an agent as a snapshot on IPFS, and returns its CID. `leftOut` lists files that are not ' +
      'in it, such as those that look like keys.',
    route: 'syncAgent',
    args: ['agentId'],
    hints: { idempotent: true },
  }),
  routeTool({
    name: 'agents_list_snapshots',
    title: 'List the snapshots of an agent',
    description: 'Lists the snapshots of an agent, newest first, with what changed in each.',
    route: 'listSnapshots',
    args: ['agentId', 'limit', 'pageToken'],
    hints: { readOnly: true },
  }),
  routeTool({
    name: 'agents_restore_snapshot',
    title: 'Restore an agent',
    description:
      'Sets the workspace of an agent back to one of its snapshots. The present workspace is saved as a snapshot first.',
    route: 'resetAgent',
    args: ['agentId', 'snapshotCid'],
    hints: { destructive: true, idempotent: true },
  }),
  routeTool({
    name: 'agents_fork',
    title: 'Fork an agent',
    description:
      'Makes new agents from an agent, as it is now or from one of its snapshots: workspace, settings, skills and ' +
      'paused tasks; not its conversations, channels and domains.',
    route: 'forkAgent',
    args: ['agentId', 'name', 'snapshotCid', 'count'],
    hints: {},
  }),
]
