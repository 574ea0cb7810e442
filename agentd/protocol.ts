/**
 * The protocol between agentd and Berth: paths under `/v1`, JSON unless a path says otherwise. Every request carries
 * `Authorization: Bearer <agentd token>`; a failure is `{"error": "<code>", "message": "…"}`.
 *
 * This file contains only types and constants: agentd runs without any package, and Berth imports it from here.
 */

/** Port of agentd in a container. In process mode it uses a free port. */
export const AGENTD_PORT = 7700
/** The engine's gateway, on loopback next to agentd; also reserved in the API. */
export const GATEWAY_PORT = 18789
/** The agent's own root, a git repository, in the API's paths, whatever the runtime. */
export const AGENT_ROOT = '/home/node/clawd'
/** Fences workers: agentd returns 409 `stale_epoch` for an epoch lower than the highest it has seen. */
export const EPOCH_HEADER = 'berth-epoch'

/** The configuration of agentd: JSON in the variable `AGENTD_CONFIG`. It contains no secrets. */
export interface AgentdConfig {
  agentId: string
  /** Address on which agentd listens. Port 0 selects a free one. */
  host: string
  port: number
  /** SHA-256 of agentd's token, in hex. */
  tokenHash: string
  /** The API's /home/node, with `clawd` and `.openclaw` in it. Survives the container. */
  home: string
  /** Folder of the engine: `<engineDir>/node_modules/openclaw`. */
  engineDir: string
  /** The gateway's port; differs from {@link GATEWAY_PORT} only in process mode. */
  gatewayPort: number
  /** A file into which agentd writes `{"pid", "port"}` once it listens; process mode only. */
  readyFile?: string
  /** Maximum bytes below `home`; the agent is stopped above it. */
  diskBytes: number
  /** True if the file system refuses writes over the limit. */
  hardLimit?: boolean
}

/**
 * `PUT /v1/gateway`: starts the gateway, or restarts it if `run` differs from the running one's. Returns 202. `DELETE
 * /v1/gateway`: stops it and the scripts; responds when nothing of them is left, after at most 15 s. These two, `POST
 * /v1/scripts` and `PUT /v1/workspace` need the worker's epoch.
 */
export interface StartRequest {
  /** Names this run of the gateway; a repeat with the same name changes nothing. */
  run: string
  /**
   * Environment in addition to the base: secrets, variables, AGENT_… and OPENCLAW_GATEWAY_TOKEN. Kept only in memory.
   */
  env: Record<string, string>
  gatewayToken: string
  /**
   * Identifies the sandbox at the egress proxy: the password in the agent's proxy variables. Undefined if the sandbox
   * has no proxy. Kept only in memory.
   */
  proxyCredential?: string | undefined
  /**
   * The certificate (PEM) of the CA with which the egress proxy signs for some hosts; the agent's programs trust it.
   * Undefined if the sandbox has no proxy.
   */
  caCertificate?: string | undefined
  /** Operator-owned keys of openclaw.json; each leaf replaces the existing value, at every start of the gateway. */
  ownedConfig: Record<string, unknown>
  /** Written into openclaw.json only if the key is missing. */
  defaultConfig: Record<string, unknown>
  /** Plugins to install into the engine's state before the gateway starts, as npm specs. */
  plugins: string[]
  /** The gateway has failed if it is not ready within this time. */
  readyMs: number
  /** Run `build`, then `start`, once the gateway is ready; only `start` after a restart without a build. */
  scripts: 'build' | 'start' | 'none'
  /**
   * The gateway has no owner yet. The next request gives it the owner's environment while it runs, and restarts it only
   * if that fails or is not enough.
   */
  spare?: boolean | undefined
  /** The names in `env` of the owner's secrets: a spare is restarted if its engine may have looked for one. */
  secretNames?: string[] | undefined
}

/**
 * The header that Berth's providers in openclaw.json send to the model gateway. agentd recognises them by it, and
 * removes those that Berth no longer owns.
 */
export const GATEWAY_MARK = 'berth-gateway'

/** Why an agent does not reply although it runs: nobody has given it a model. */
export const NO_MODEL =
  "No model: attach a provider's key to the agent as a secret, such as OPENAI_API_KEY or ANTHROPIC_API_KEY, and " +
  'restart it, or have the operator set BERTH_MODEL_URL'

export type GatewayState = 'stopped' | 'starting' | 'ready' | 'failed'

/** The state of the script `build` or `start`. An interrupted `build` is `pending` again. */
export interface ScriptStatus {
  state: 'not_configured' | 'pending' | 'running' | 'success' | 'failed'
  exitCode: number | null
  startedAt: string | null
  finishedAt: string | null
  /** Why it failed, if the kernel killed one of its processes for memory. */
  reason?: string | undefined
}

/** `GET /v1/status?wait=<ms>&version=<seen>`: responds at once, or as soon as `version` has changed. */
export interface AgentStatus {
  agentId: string
  /** Grows with every change of this response. */
  version: number
  epoch: number
  startedAt: string
  gateway: {
    state: GatewayState
    run: string | null
    pid: number | null
    /** How often it restarted by itself in this run. */
    restarts: number
    exitCode: number | null
    /** Why it failed, one line; the engine's own reason if it gives one. While it is ready: what it lacks. */
    reason: string | null
    /** When and why it restarted in this run, if the kernel killed it for memory. */
    outOfMemory: string | null
    /** The last lines of its log, at most 20, if it failed. */
    lastLines: string[]
  }
  scripts: { build: ScriptStatus; start: ScriptStatus }
  disk: { usedBytes: number; limitBytes: number; hardLimit: boolean }
  /** As last measured, see {@link UsageSample}. */
  memory: { usedBytes: number; limitBytes: number | null } | null
  /** Grows whenever `GET /v1/task-runs` may have a new run; 0 until the gateway is ready. */
  taskRuns: number
}

/** `GET /v1/task-runs?offset=`: a page of ended runs of scheduled tasks, newest first. */
export interface TaskRunPage {
  runs: TaskRun[]
  /** The offset of the next page; null if there is none. */
  next: number | null
}
export interface TaskRun {
  runId: string
  taskId: string
  /** Null if the task is gone. */
  name: string | null
  status: 'ok' | 'error' | 'skipped'
  startedAt: string
  endedAt: string
  durationMs: number | null
  /** The engine's error, without the values of secrets. */
  error: string | null
}

/**
 * `POST /v1/scripts`: stops running scripts, then runs `build` and after its success `start`, or only `start`. Returns
 * 202; 503 `not_ready` while the gateway is not ready, because scripts use its environment.
 */
export interface ScriptsRequest {
  run: 'build' | 'start'
}

/** `PUT /v1/workspace`: writes files below the root that do not exist yet. */
export interface SeedRequest {
  files: { path: string; text: string }[]
}

/** Below the root; the engine reads it, see `src/openclaw/config.ts`. */
export const SKILLS_FOLDER = 'skills'

/**
 * The folders of skills. `GET /v1/skills`: `{skills: SkillFolder[]}`. `PUT /v1/skills/<name>` (fenced, the name
 * percent-encoded; `@owner/name` is two folders): {@link SkillFiles}, replaces the folder atomically and returns its
 * {@link SkillFolder}; 409 `conflict` if that would lose the agent's own changes. `DELETE /v1/skills/<name>` (fenced):
 * removes a folder that Berth put there, including the agent's changes in it.
 */
export interface SkillFolder {
  name: string
  /** The skill that Berth put there; null for a folder that the agent created. */
  cid: string | null
  /**
   * The state of the folder: `same` as Berth put it there, or `modified`, which includes folders that the agent
   * created.
   */
  state: 'same' | 'modified' | 'missing'
}
export interface SkillFiles {
  cid: string
  files: { path: string; base64: string }[]
  /** In a conflict: `replace` the folder, or `keep` it unchanged, as if it came from this version. */
  resolution?: 'replace' | 'keep' | undefined
}

/**
 * Header of an upgrade to `/v1/gateway/` from a browser, whose client has to authenticate as the engine requires. The
 * gateway then sees a page of its own machine, and accepts its own web client.
 */
export const BROWSER_HEADER = 'berth-browser'

/**
 * `/v1/port/<port>`: HTTP and upgrades to a port of the agent on loopback, with `host` and the other headers unchanged,
 * except those that begin with `berth-`. Path and query are in {@link PORT_PATH_HEADER}, not in the path of the call:
 * there `..`, in any spelling, would lead to other ports and to everything that agentd can do. A response with
 * {@link PORT_ANSWER_HEADER} comes from the port, any other from agentd itself: 503 `not_ready` if nothing listens, 502
 * `engine` if no HTTP comes back.
 */
export const PORT_PATH_HEADER = 'berth-path'
/** The visitor's `Authorization`, because the call itself carries agentd's. */
export const PORT_AUTHORIZATION_HEADER = 'berth-authorization'
export const PORT_ANSWER_HEADER = 'berth-answer'
/**
 * `/v1/tunnel/<port>`, an upgrade: a connection to a port of the agent on loopback, which agentd does not read; 503
 * `not_ready` if nothing listens. agentd of 0.3.0 returns 404.
 */
export const TUNNEL_UPGRADE = 'tcp'

/** `POST /v1/exec`. */
export interface ExecRequest {
  command: string
  /** Folder in the API's form: absolute, or below the root. */
  cwd?: string | undefined
  /** The command's stdin; without it, there is none. */
  input?: string | undefined
  timeoutMs: number
  /** Maximum bytes of stdout and stderr together that are kept; the rest is dropped and `truncated` set. */
  outputBytes: number
}

/** The response of `POST /v1/exec`, after the command has ended. */
export interface ExecResult {
  stdout: string
  stderr: string
  /** 128 + the signal's number if a signal ended it, as shells report it. */
  exitCode: number
  truncated: boolean
  timedOut: boolean
  /** Why it failed, if the kernel killed one of its processes for memory; also the last line of `stderr`. */
  reason?: string | undefined
}

/** Lines for `Accept: application/x-ndjson`, `exit` last. The command is killed when the client disconnects. */
export type ExecEvent =
  | { stream: 'stdout' | 'stderr'; text: string }
  | { exit: Omit<ExecResult, 'stdout' | 'stderr'> }

/**
 * Number of log lines that agentd keeps: of the gateway, scripts and agentd itself. They survive every run of the
 * gateway.
 */
export const KEPT_LINES = 1000

/** A line of `GET /v1/logs?lines=N` (`{lines: LogLine[]}`) and of `GET /v1/logs/stream` (NDJSON). */
export interface LogLine {
  timestamp: string
  level: 'TRACE' | 'DEBUG' | 'INFO' | 'WARN' | 'ERROR' | 'FATAL'
  /** `gateway/…`, `script/build`, `script/start`, `agentd`. */
  source: string
  message: string
}

/**
 * `GET /v1/file?path=` returns the raw bytes of a file; with `max=<bytes>` 413 `too_large` for a longer one, before its
 * first byte; `ETag` contains its version. `PUT /v1/file?path=` takes raw bytes, creates missing folders, and replaces
 * an existing file atomically; with `version=` only that version, empty for no file: otherwise 409 `conflict`. `DELETE
 * /v1/file?path=` removes a file, or a folder with its contents.
 */
export interface FileWritten {
  /** Path in the API's form: absolute, below {@link AGENT_ROOT}. */
  path: string
  size: number
  version: string
}

/** An entry of `GET /v1/list?path=` (`{entries: FileEntry[], truncated}`), sorted by name. */
export interface FileEntry {
  name: string
  type: 'file' | 'directory' | 'symlink' | 'other'
  size: number
  modifiedAt: string
}

/**
 * `PUT /v1/config` (`{text}`) and `POST /v1/config/validate` (`{text?}`: without it the stored config). `GET
 * /v1/config` returns `{text}`, with `__OPENCLAW_REDACTED__` for each secret; written back it stands for the stored
 * value. A PUT is `bad_request` if it is not a JSON object, sets another value for a key that the worker owns, or
 * contains a redacted value without a stored one; the message begins with the key. `GET /v1/config/owned` returns the
 * paths of the keys that the worker owns, in the same form: `{keys}`. `GET /v1/config/own` returns all other keys, with
 * their secrets: `{config}`.
 */
export interface ConfigCheck {
  valid: boolean
  /** The engine's output. */
  output: string
}

/** `version` is an `ETag` of the file: `PUT /v1/config` with another `version` is a `conflict`. */
export interface ConfigText {
  text: string
  version: string
}

/** `PUT /v1/config`; without a version nothing was written. */
export interface ConfigWritten extends ConfigCheck {
  version?: string | undefined
}

/** `POST /v1/rpc`: a method of the gateway, over its WebSocket. */
export interface RpcRequest {
  method: string
  params: Record<string, unknown>
  timeoutMs: number
}
export type RpcResponse =
  | { ok: true; payload: unknown }
  /** `code` is the engine's most specific one: `CRON_JOB_NOT_FOUND` rather than `INVALID_REQUEST`. */
  | { ok: false; error: { code: string; message: string } }

/**
 * `POST /v1/chat`: NDJSON of {@link ChatEvent}, `end` or `error` last. With `message`: says it, and follows the reply;
 * 409 `conflict` while the agent is still replying to another one. Without: follows the reply in progress, if any. A
 * reply continues if the client disconnects. Empty lines keep the stream open.
 */
export interface ChatRequest {
  /** The engine's name for the conversation. */
  sessionKey: string
  message?: string
  /** The engine's id for the reply, a UUID; a message that is sent again with it is not said twice. */
  runId?: string
}
/** A `runId` needs the second path, because earlier versions of agentd ignore it. */
export const CHAT_PATHS = ['/v1/chat', '/v1/chat/run'] as const
export type ChatEvent =
  /** More of an unfinished text; `replace` if it starts over. */
  | { type: 'text'; item: string; text: string; replace: boolean }
  /** A message that the engine has stored, in its `chat.history` format; null if it is too long for a line. */
  | { type: 'message'; message: unknown }
  /** A tool call has begun or ended; its result is a message that the engine does not report before the reply's end. */
  | { type: 'tool'; call: string; state: 'running' | 'done' | 'failed' }
  | { type: 'end'; state: 'done' | 'stopped' | 'failed' | 'idle'; error?: string }
  /** The stream ended before the end of the reply was known; `error` is the reason. */
  | { type: 'error'; error: string }

/** `GET /v1/usage`: the agent's usage, one sample every 15 s, for the last hour; none until agentd has run for 15 s. */
export interface UsageAnswer {
  memoryLimitBytes: number | null
  disk: { usedBytes: number; limitBytes: number }
  /** Oldest first. */
  samples: UsageSample[]
}
export interface UsageSample {
  at: string
  /** Resident memory of all processes; shared pages count for each process. */
  memoryBytes: number
  /** Average number of processors used since the previous sample. */
  cpus: number
  diskBytes: number
  processes: number
}

/** Codes of agentd's errors and their statuses. */
export const AGENTD_ERRORS = {
  unauthorized: 401,
  bad_request: 400,
  not_found: 404,
  /** A path outside the root, or through a link that leads out. */
  outside: 403,
  not_a_file: 400,
  too_large: 413,
  stale_epoch: 409,
  /** The call would lose the agent's changes. */
  conflict: 409,
  /** The maximum number of such calls is already running. */
  busy: 429,
  /** The gateway is not ready. */
  not_ready: 503,
  /** The engine's own refusal, in `message`. */
  engine: 502,
  disk_full: 507,
  /** The sandbox lacks a program or device that this needs. */
  unsupported: 501,
  internal: 500,
} as const
export type AgentdErrorCode = keyof typeof AGENTD_ERRORS
