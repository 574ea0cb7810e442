import type { Section } from '../rows.ts'

/** Contract 7.2: each message, where it comes from, and its status. */
export const messages: Section[] = [
  {
    title: '7.2 Messages',
    rows: [
      [
        '401 `Missing userId`, endpoints with a JWT',
        'auth > a key > a key that acts for nobody is 401 Missing userId, whatever its scopes',
      ],
      [
        '403 `Agent limit reached`, create',
        'agents/plans > the free plan > the free plan has one agent',
        'openclaw/lifecycle > creating an agent > creating an agent stops at the limit of the plan, however many ask at once',
      ],
      [
        '400 `Storage not configured`, sync',
        'agents/own-settings.processes > a web process > a web process without a network for snapshots > a web process without a network for snapshots answers 400 to a sync: Storage not configured',
      ],
      [
        '500 `Sync failed`, sync',
        'openclaw/engine-failures > a repository that cannot be written > a repository that cannot be written fails a sync: Sync failed',
      ],
      [
        '404 `Snapshot not found`, reset',
        'openclaw/snapshots > a reset > a reset is 404 for what is not in the history of this agent',
      ],
      [
        '400 `Invalid snapshot CID`, reset',
        'openclaw/snapshots > a reset > a reset is 400 for {}',
        'openclaw/snapshots > a reset > a reset is 400 for {"snapshotCid":"latest"}',
      ],
      [
        '500 `Reset failed`, reset where git fails',
        'openclaw/engine-failures > a repository that cannot be written > a repository that cannot be written fails a reset: Reset failed',
      ],
      [
        '400 `Unsupported channel`, removing a channel',
        'openclaw/channels > channels > channels that are not there cannot be removed',
      ],
      [
        '500 `Configuration failed`, configuring a channel',
        'openclaw/channels > a channel of an agent that runs > a channel of an agent that runs fails with the gateway, and stays as it was asked for',
      ],
      [
        '500 `Removal failed`, removing a channel',
        'openclaw/channels > a channel of an agent that runs > a channel of an agent that runs fails with the gateway, and stays as it was asked for',
      ],
      [
        '400 `Invalid command`, console',
        'openclaw/console > a command > a command is refused when it is an empty text',
        'openclaw/console > a command > a command is refused in a folder that is not there',
      ],
      [
        '500 `Execution failed`, console',
        'agents/own-settings.processes > a web process > a web process fails a command whose end nobody tells: Execution failed',
      ],
      [
        '400 `Invalid JSON or invalid config`, validating and writing the config',
        'openclaw/config > validating a config > validating a config that is no JSON object is 400',
        'openclaw/config > the config > the config of an agent is not written when it is no JSON: "{"',
        'openclaw/config > the config > the config of an agent is not written when it is not what the engine knows: {"nonsense":true}',
      ],
      [
        '500 `Validation command failed`, validating the config',
        'openclaw/engine-failures > an engine that hangs, without its config > an engine that hangs, without its config, fails validating it: Validation command failed',
      ],
      [
        '500 `Failed to read config`, reading the config',
        'openclaw/config > where the config cannot be had > reading and writing a config that cannot be had fail as the contract says',
      ],
      [
        '500 `Failed to write config`, writing the config',
        'openclaw/config > where the config cannot be had > reading and writing a config that cannot be had fail as the contract says',
      ],
      [
        '400 `Invalid version`, restart',
        'openclaw/lifecycle > an agent > an agent is not restarted on version "2020.1.1"',
        'openclaw/lifecycle > an agent > a restart of an agent is 400 for a version that is no text',
        'openclaw/lifecycle > an agent > an agent refuses a version that cannot read what a newer one wrote, and goes on',
      ],
      [
        '500 `Restart failed`, restart',
        'openclaw/late-engine > an agent that does not come up in time > an agent that does not come up in time is 500 with the agent, which is listed, and can be restarted',
      ],
      [
        '500 `Script launch failed`, running the scripts again',
        'openclaw/late-engine > an agent that does not come up in time > an agent that does not come up in time is 500 with the agent, which is listed, and can be restarted',
      ],
      [
        '413 `File too large`, uploading a file',
        'openclaw/files > uploading a file > uploading a file takes the largest, and refuses one byte more',
        'openclaw/files > uploading a file > uploading a file refuses a body that is too large while it is sent, and keeps the connection',
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
        'agents/own-settings.processes > a web process > a web process answers 500 when it cannot sign a platform token',
      ],
      [
        '503 `Secrets not configured`, creating a secret',
        'agents/own-settings.processes > a web process > a web process without a SECRETS_KEY > a web process without a SECRETS_KEY answers 503 where a value has to be encrypted, after authentication and validation',
      ],
      [
        '409 `Duplicate secret name`, creating a secret',
        'agents/secrets > a second secret of the same name > a second secret of the same name is 409',
        'agents/secrets > a second secret of the same name > a second secret of the same name is 409 for all but one of many at once',
      ],
      [
        '409 `Conflicting secrets`, attaching secrets',
        'agents/attachments > two credentials of one provider > two credentials of one provider (OPENAI_API_KEY, CODEX_API_KEY) are 409, one after the other and together',
        'agents/attachments > two credentials of one provider > two credentials of one provider (OPENAI_API_KEY, CODEX_API_KEY) leave one when they are attached at once',
      ],
      [
        '400 `Invalid parameters`, creating a task',
        'openclaw/tasks > a task > a task is refused with no name',
        'openclaw/tasks > a task > a task is refused with no schedule',
        'openclaw/tasks > a task > a task is refused with no payload',
        'openclaw/tasks > a task > a task is refused with an unknown schedule',
        'openclaw/tasks > a task > a task is refused in a malformed body',
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
        'openclaw/late-engine > an agent that does not come up in time > an agent that does not come up in time is 500 with the agent, which is listed, and can be restarted',
      ],
    ],
  },
]
