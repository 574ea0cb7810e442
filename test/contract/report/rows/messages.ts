import type { Section } from '../rows.ts'

/** Contract 7.2: each message, its source and its status. */
export const messages: Section[] = [
  {
    title: '7.2 Messages',
    rows: [
      [
        '401 `Missing userId`, endpoints with a JWT',
        'auth > a key > a key that acts for no user gets 401 Missing userId, whatever its scopes',
      ],
      [
        '403 `Agent limit reached`, create',
        'agents/plans > the free plan > the free plan allows one agent',
        "openclaw/lifecycle > creating an agent > creating agents concurrently stops at the plan's limit",
      ],
      [
        '400 `Storage not configured`, sync',
        'agents/own-settings.processes > a web process > a web process without a snapshot network > a web process without a snapshot network rejects a sync: 400 Storage not configured',
      ],
      [
        '500 `Sync failed`, sync',
        'openclaw/engine-failures > a read-only repository > a read-only repository fails a sync: Sync failed',
      ],
      [
        '404 `Snapshot not found`, reset',
        'openclaw/snapshots > resetting an agent > resetting an agent returns 404 for a snapshot outside its history',
      ],
      [
        '400 `Invalid snapshot CID`, reset',
        'openclaw/snapshots > resetting an agent > resetting an agent returns 400 for {}',
        'openclaw/snapshots > resetting an agent > resetting an agent returns 400 for {"snapshotCid":"latest"}',
      ],
      [
        '500 `Reset failed`, reset if git fails',
        'openclaw/engine-failures > a read-only repository > a read-only repository fails a reset: Reset failed',
      ],
      [
        '400 `Unsupported channel`, removing a channel',
        'openclaw/channels > channels > a channel that is not configured cannot be removed',
      ],
      [
        '500 `Configuration failed`, configuring a channel',
        'openclaw/channels > channels of a running agent > a channel change of a running agent fails with the gateway, and stays saved',
      ],
      [
        '500 `Removal failed`, removing a channel',
        'openclaw/channels > channels of a running agent > a channel change of a running agent fails with the gateway, and stays saved',
      ],
      [
        '400 `Invalid command`, console',
        'openclaw/console > a command > a command is refused if it is an empty string',
        'openclaw/console > a command > a command is refused if its folder does not exist',
      ],
      [
        '500 `Execution failed`, console',
        'agents/own-settings.processes > a web process > a command whose end is unknown returns 500: Execution failed',
      ],
      [
        '400 `Invalid JSON or invalid config`, validating and writing the config',
        'openclaw/config > validating a config > validating a config that is not a JSON object returns 400',
        'openclaw/config > the config > the config of an agent is not written if it is not JSON: "{"',
        'openclaw/config > the config > the config of an agent is not written if it is unknown to the engine: {"nonsense":true}',
      ],
      [
        '500 `Validation command failed`, validating the config',
        'openclaw/engine-failures > an engine that hangs without its config > an engine that hangs without its config fails a validation: Validation command failed',
      ],
      [
        '500 `Failed to read config`, reading the config',
        "openclaw/config > an unreadable config > reading and writing an unreadable config return the contract's errors",
      ],
      [
        '500 `Failed to write config`, writing the config',
        "openclaw/config > an unreadable config > reading and writing an unreadable config return the contract's errors",
      ],
      [
        '400 `Invalid version`, restart',
        'openclaw/lifecycle > an agent > an agent is not restarted with version "2020.1.1"',
        'openclaw/lifecycle > an agent > restarting an agent returns 400 for a version that is not a string',
        'openclaw/lifecycle > an agent > an agent keeps running if an older version cannot read its newer state',
      ],
      [
        '500 `Restart failed`, restart',
        'openclaw/late-engine > an agent that does not start in time > an agent that does not start in time returns 500, is listed, and can be restarted',
      ],
      [
        '500 `Script launch failed`, running the scripts again',
        'openclaw/late-engine > an agent that does not start in time > an agent that does not start in time returns 500, is listed, and can be restarted',
      ],
      [
        '413 `File too large`, uploading a file',
        'openclaw/files > uploading a file > uploading a file is limited to the largest size',
        'openclaw/files > uploading a file > an upload that is too large is refused while it is sent, and keeps the connection',
      ],
      [
        '500 `CLI error`, devices and tasks',
        'openclaw/engine-failures > an engine that hangs > an engine that hangs fails listing devices: CLI error',
        'openclaw/engine-failures > an engine that hangs > an engine that hangs fails approving a device: CLI error',
        'openclaw/engine-failures > an engine that hangs > an engine that hangs fails reading a task: CLI error',
        'openclaw/engine-failures > an engine that hangs > an engine that hangs fails running a task: CLI error',
      ],
      [
        '500 `Token generation failed`, platform token',
        'agents/own-settings.processes > a web process > a web process returns 500 if it cannot sign a platform token',
      ],
      [
        '503 `Secrets not configured`, creating a secret',
        'agents/own-settings.processes > a web process > a web process without a SECRETS_KEY > a web process without a SECRETS_KEY returns 503 after authentication and validation',
      ],
      [
        '409 `Duplicate secret name`, creating a secret',
        'agents/secrets > duplicate secret names > a second secret with the same name returns 409',
        'agents/secrets > duplicate secret names > concurrent secrets with the same name: one is created and the others return 409',
      ],
      [
        '409 `Conflicting secrets`, attaching secrets',
        'agents/attachments > two credentials of one provider > two credentials of one provider (OPENAI_API_KEY, CODEX_API_KEY) return 409, in sequence or together',
        'agents/attachments > two credentials of one provider > two credentials of one provider (OPENAI_API_KEY, CODEX_API_KEY) attached at once leave one',
      ],
      [
        '400 `Invalid parameters`, creating a task',
        'openclaw/tasks > a task > a task is refused with no name',
        'openclaw/tasks > a task > a task is refused with no schedule',
        'openclaw/tasks > a task > a task is refused with no payload',
        'openclaw/tasks > a task > a task is refused with an unknown schedule',
        'openclaw/tasks > a task > a task is refused if its body is malformed',
      ],
      [
        '500 `Failed to create cron job`, creating a task',
        'openclaw/engine-failures > an engine that hangs > an engine that hangs fails creating a task: Failed to create cron job',
      ],
      [
        '500 `Failed to list cron jobs`, listing tasks',
        'openclaw/engine-failures > an engine that hangs > an engine that hangs fails listing tasks: Failed to list cron jobs',
      ],
      [
        '500 `Gateway failed to start`, create',
        'openclaw/late-engine > an agent that does not start in time > an agent that does not start in time returns 500, is listed, and can be restarted',
      ],
    ],
  },
]
