/**
 * The protocol between agentd and Berth: paths under `/v1`, JSON unless a path says otherwise. Every request
 * carries `Authorization: Bearer <agentd token>`; a failure is `{"error": "<code>", "message": "…"}`.
 *
 * This file has types and constants only: agentd runs without any package, and Berth imports it from here.
 */

/** Port of agentd in a container. In process mode it takes a free port. */
export const AGENTD_PORT = 7700
/** The engine's gateway, on loopback beside agentd; also reserved in the API. */
export const GATEWAY_PORT = 18789
/** The agent's own root, a git repository, as paths of the API name it whatever the runtime. */
export const AGENT_ROOT = '/home/node/clawd'
/** Fences workers: agentd answers 409 `stale_epoch` to a lower one than it has seen. */
export const EPOCH_HEADER = 'berth-epoch'

/** The configuration of agentd: JSON in the variable `AGENTD_CONFIG`. Nothing in it is secret. */
export interface AgentdConfig {
  agentId: string
  /** Address on which agentd listens. Port 0 takes a free one. */
  host: string
  port: number
  /** SHA-256 of agentd's token, in hex. */
  tokenHash: string
  /** Folder that the API calls /home/node: `clawd` and `.openclaw` are in it. Survives the container. */
  home: string
  /** Folder of the engine: `<engineDir>/node_modules/openclaw`. */
  engineDir: string
  /** The gateway's port; another one than {@link GATEWAY_PORT} in process mode only. */
  gatewayPort: number
  /** A file into which agentd writes `{"pid", "port"}` once it listens; process mode only. */
  readyFile?: string
  /** Most bytes below `home`: over it the agent is stopped. */
  diskBytes: number
  /** The file system refuses writes over the limit. */
  hardLimit?: boolean
}

/**
 * `PUT /v1/gateway`: start the gateway, or restart it when `run` is another one than the running one's. Answers 202.
 * `DELETE /v1/gateway`: stop it and the scripts; answers when nothing of them is left, after 15 s at most.
 * They, `POST /v1/scripts` and `PUT /v1/workspace` need the worker's epoch.
 */
export interface StartRequest {
  /** Names this run of the gateway; a repeat with the same one changes nothing. */
  run: string
  /** Environment beside the base one: secrets, variables, AGENT_… and OPENCLAW_GATEWAY_TOKEN. Kept in memory only. */
  env: Record<string, string>
  gatewayToken: string
  /** Operator-owned keys of openclaw.json; each leaf replaces what is there, at every start of the gateway. */
  ownedConfig: Record<string, unknown>
  /** Written into openclaw.json only where the key is not there. */
  defaultConfig: Record<string, unknown>
  /** Plugins to install into the engine's state before the gateway starts, as npm specs. */
  plugins: string[]
  /** The gateway has failed when it is not ready within this. */
  readyMs: number
  /** Run `build`, then `start`, once the gateway is ready; `start` alone after a restart without it. */
  scripts: 'build' | 'start' | 'none'
}

/** Why an agent does not answer although it runs: nobody has given it a model. */
export const NO_MODEL =
  "No model: attach a provider's key to the agent as a secret, such as OPENAI_API_KEY or ANTHROPIC_API_KEY, and " +
  'restart it, or have the operator set BERTH_MODEL_URL'

export type GatewayState = 'stopped' | 'starting' | 'ready' | 'failed'

/** The state of the script `build` or `start`. A `build` that is interrupted is `pending` again. */
export interface ScriptStatus {
  state: 'not_configured' | 'pending' | 'running' | 'success' | 'failed'
  exitCode: number | null
  startedAt: string | null
  finishedAt: string | null
  /** Why it failed, if the kernel killed a process for memory while it ran. */
  reason?: string | undefined
}

/** `GET /v1/status?wait=<ms>&version=<seen>`: at once, or as soon as `version` is another one. */
export interface AgentStatus {
  agentId: string
  /** Grows with every change of this answer. */
  version: number
  epoch: number
  startedAt: string
  gateway: {
    state: GatewayState
    run: string | null
    pid: number | null
    /** How often it was started again by itself in this run. */
    restarts: number
    exitCode: number | null
    /** Why it failed, one line: of the engine where it says so. While it is ready: what it lacks. */
    reason: string | null
    /** When and why it was started again in this run, if the kernel killed it for memory. */
    outOfMemory: string | null
    /** The last lines of its log, at most 20, when it failed. */
    lastLines: string[]
  }
  scripts: { build: ScriptStatus; start: ScriptStatus }
  disk: { usedBytes: number; limitBytes: number; hardLimit: boolean }
  /** As it was last measured, see {@link UsageSample}. */
  memory: { usedBytes: number; limitBytes: number | null } | null
  /** Grows whenever `GET /v1/task-runs` may have a run that it had not before; 0 before the gateway was ready. */
  taskRuns: number
}

/** `GET /v1/task-runs?offset=`: a page of the runs of scheduled tasks that have ended, the newest first. */
export interface TaskRunPage {
  runs: TaskRun[]
  /** The offset of the next page; null where there is none. */
  next: number | null
}
export interface TaskRun {
  runId: string
  taskId: string
  /** Null for a task that is gone. */
  name: string | null
  status: 'ok' | 'error' | 'skipped'
  startedAt: string
  endedAt: string
  durationMs: number | null
  /** The engine's, without the values of secrets. */
  error: string | null
}

/**
 * `POST /v1/scripts`: stops the scripts that run, then runs `build` and after its success `start`, or `start` alone.
 * Answers 202; 503 `not_ready` while the gateway is not ready, as its environment is theirs.
 */
export interface ScriptsRequest {
  run: 'build' | 'start'
}

/** `PUT /v1/workspace`: writes files below the root that are not there yet. */
export interface SeedRequest {
  files: { path: string; text: string }[]
}

/** Below the root; the engine reads it, see `src/openclaw/config.ts`. */
export const SKILLS_FOLDER = 'skills'

/**
 * The folders of skills. `GET /v1/skills`: `{skills: SkillFolder[]}`. `PUT /v1/skills/<name>` (fenced, the name
 * percent-encoded; `@owner/name` is two folders): {@link SkillFiles}, replaces the folder in one step and answers its
 * {@link SkillFolder}; 409 `conflict` where that would lose something which the agent made. `DELETE
 * /v1/skills/<name>` (fenced): removes a folder that Berth put there, with what the agent changed in it.
 */
export interface SkillFolder {
  name: string
  /** The skill that Berth put there; null for a folder of the agent's own. */
  cid: string | null
  /** The state of the folder: `same` as Berth put it there, or `modified`, as is a folder of the agent's own. */
  state: 'same' | 'modified' | 'missing'
}
export interface SkillFiles {
  cid: string
  files: { path: string; base64: string }[]
  /** In a conflict: `replace` the folder, or `keep` it as it is, as if it came from this version. */
  resolution?: 'replace' | 'keep' | undefined
}

/**
 * Header of an upgrade to `/v1/gateway/` from a browser, whose client has to identify itself as the engine asks it to.
 * The gateway then sees a page of its own machine, and takes its own web client.
 */
export const BROWSER_HEADER = 'berth-browser'

/**
 * `/v1/port/<port>`: HTTP and upgrades to a port of the agent on loopback, with `host` and the other headers as they
 * came, except those that begin with `berth-`. Path and query are in {@link PORT_PATH_HEADER}, and not in the path of
 * the call: there `..`, in whichever spelling, would lead to other ports and to all that agentd can do. An answer with
 * {@link PORT_ANSWER_HEADER} is the port's, any other agentd's own: 503 `not_ready` where nothing listens, 502 `engine`
 * where no HTTP comes back.
 */
export const PORT_PATH_HEADER = 'berth-path'
/** The visitor's `Authorization`, as the call itself has agentd's. */
export const PORT_AUTHORIZATION_HEADER = 'berth-authorization'
export const PORT_ANSWER_HEADER = 'berth-answer'
/**
 * `/v1/tunnel/<port>`, an upgrade: a connection to a port of the agent on loopback, of which agentd reads nothing; 503
 * `not_ready` where nothing listens. agentd of 0.3.0 answers 404.
 */
export const TUNNEL_UPGRADE = 'tcp'

/** `POST /v1/exec`. */
export interface ExecRequest {
  command: string
  /** Folder as the API names it: absolute, or below the root. */
  cwd?: string | undefined
  timeoutMs: number
  /** Most bytes of stdout and stderr together that are kept; the rest is dropped and `truncated` set. */
  outputBytes: number
}

/** The answer of `POST /v1/exec`, when it has ended. */
export interface ExecResult {
  stdout: string
  stderr: string
  /** 128 + the signal's number when a signal ended it, as shells say it. */
  exitCode: number
  truncated: boolean
  timedOut: boolean
  /** Why it failed, if the kernel killed a process for memory while it ran; also the last line of `stderr`. */
  reason?: string | undefined
}

/** With `Accept: application/x-ndjson`: lines of this, `exit` last. The command is killed when the client goes. */
export type ExecEvent =
  | { stream: 'stdout' | 'stderr'; text: string }
  | { exit: Omit<ExecResult, 'stdout' | 'stderr'> }

/** Lines of the log that agentd keeps: of the gateway, of scripts and of agentd itself. They outlive every run of the gateway. */
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
 * `GET /v1/file?path=` answers the raw bytes of a file; with `max=<bytes>` 413 `too_large` for a longer one, before a
 * byte of it; `ETag` has its version. `PUT /v1/file?path=` takes raw bytes, makes missing folders, and puts the whole
 * file in place at once, over one that is there; with `version=` only over that version, empty where there is none: else
 * 409 `conflict`. `DELETE /v1/file?path=` removes a file, or a folder with all in it.
 */
export interface FileWritten {
  /** Path as the API names it: absolute, below {@link AGENT_ROOT}. */
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
 * `PUT /v1/config` (`{text}`) and `POST /v1/config/validate` (`{text?}`: without it what is on disk). `GET /v1/config`
 * answers `{text}`, with `__OPENCLAW_REDACTED__` for each secret; written back it stands for what is stored. A PUT of
 * no JSON object, of another value for a key that the worker owns, or of a redacted value where none is stored is
 * `bad_request`, and the message begins with the key. `GET /v1/config/owned` answers the paths of the keys that the
 * worker owns, as that message has them: `{keys}`.
 */
export interface ConfigCheck {
  valid: boolean
  /** The engine's answer. */
  output: string
}

/** `version` is an `ETag` of the file: `PUT /v1/config` with another `version` is `conflict`. */
export interface ConfigText {
  text: string
  version: string
}

/** `PUT /v1/config`; without a version nothing is written. */
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
  /** `code` is the engine's most particular one: `CRON_JOB_NOT_FOUND` rather than `INVALID_REQUEST`. */
  | { ok: false; error: { code: string; message: string } }

/**
 * `POST /v1/chat`: NDJSON of {@link ChatEvent}, `end` or `error` last. With `message`: says it, and follows the reply; 409 `conflict`
 * while the agent still replies to another one. Without: follows the reply that is under way, if there is one. A reply goes on
 * when the client goes. Empty lines keep the stream open.
 */
export interface ChatRequest {
  /** The engine's name of the conversation. */
  sessionKey: string
  message?: string
}
export type ChatEvent =
  /** More of a text that is being written; `replace` where it begins anew. */
  | { type: 'text'; item: string; text: string; replace: boolean }
  /** A message that the engine has kept, as its `chat.history` has it; null for one that is too long for a line. */
  | { type: 'message'; message: unknown }
  /** A call of a tool has begun, or has ended; its result is a message that the engine does not tell of before the reply's end. */
  | { type: 'tool'; call: string; state: 'running' | 'done' | 'failed' }
  | { type: 'end'; state: 'done' | 'stopped' | 'failed' | 'idle'; error?: string }
  /** The stream has ended before the end of the reply was known; `error` is the reason. */
  | { type: 'error'; error: string }

/** `GET /v1/usage`: what the agent uses, a sample every 15 s, of the last hour; none until agentd runs for 15 s. */
export interface UsageAnswer {
  memoryLimitBytes: number | null
  disk: { usedBytes: number; limitBytes: number }
  /** Oldest first. */
  samples: UsageSample[]
}
export interface UsageSample {
  at: string
  /** Resident memory of all processes; pages that several share are counted for each. */
  memoryBytes: number
  /** Processors that were used on average since the sample before. */
  cpus: number
  diskBytes: number
  processes: number
}

/** Codes of agentd's errors and their statuses. */
export const AGENTD_ERRORS = {
  unauthorized: 401,
  bad_request: 400,
  not_found: 404,
  /** A path outside of the root, or through a link that leads out. */
  outside: 403,
  not_a_file: 400,
  too_large: 413,
  stale_epoch: 409,
  /** The call would lose what the agent made. */
  conflict: 409,
  /** Calls of this kind are running already, as many as may at once. */
  busy: 429,
  /** The gateway is not ready. */
  not_ready: 503,
  /** The engine's own refusal, in `message`. */
  engine: 502,
  disk_full: 507,
  internal: 500,
} as const
export type AgentdErrorCode = keyof typeof AGENTD_ERRORS
