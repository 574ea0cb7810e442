/** The output of `npm start` in a terminal: a welcome, and the log in short lines. Elsewhere, the log stays JSON. */
import { Writable } from 'node:stream'
import { styleText } from 'node:util'
import type { Config } from '../config.ts'
import type { ModelServer } from '../lib/net/local-models.ts'

const LEVELS: Record<number, (text: string) => string> = {
  40: (text) => styleText('yellow', text),
  50: (text) => styleText('red', text),
  60: (text) => styleText(['red', 'bold'], text),
}

/** The width of the longest role name, plus a space. */
const ROLE_WIDTH = 'agent-proxy '.length

const listed = new Intl.ListFormat('en')

/** A model server on this machine, and the model that agents use. */
export type FoundModel = ModelServer & { model: string }

export interface Welcome {
  url: string
  /** A link that signs in to the dashboard once. */
  login: string | undefined
  /** A gateway's host, without the port. */
  gateway: string | undefined
  /** The first API key, if this start created it. */
  key: string | undefined
  dataDir: string
  postgres: { location: string } | undefined
  parts: Pick<Config, 'REDIS_URL' | 'IPFS_API_URL' | 'BERTH_MODEL_URL'>
  /** Used because BERTH_MODEL_URL is not set. */
  model: FoundModel | undefined
}

export class Terminal {
  readonly #human = process.stdout.isTTY === true

  /** The stream of the supervisor's own log. */
  readonly logStream = new Writable({
    write: (chunk, _encoding, done) => {
      for (const line of String(chunk).split('\n')) if (line) this.line('start', line)
      done()
    },
  })

  /** Prints a line that a role wrote. */
  line(role: string, line: string): void {
    process.stdout.write(`${this.#human ? short(role, line) : line}\n`)
  }

  welcome({ url, login, gateway, key, dataDir, postgres, parts, model }: Welcome): void {
    const bold = (text: string) => styleText('bold', text)
    const dim = (text: string) => styleText('dim', text)
    process.stdout.write(
      [
        '',
        `  ${bold('Berth is up.')}`,
        '',
        ...(login
          ? [
              `  Dashboard ${bold(login)}`,
              `            ${dim('signs in once, for 15 minutes; `npx berth login-link` makes another')}`,
            ]
          : []),
        `  API       ${bold(`${url}/v3`)}`,
        `  Docs      ${bold(`${url}/docs`)}`,
        ...(gateway ? [`  Gateway   ${bold(`${onHost(url, gateway)}/ipfs/<cid>`)}`] : []),
        `  Agents    ${bold(`${url}/v0/agents/<agentId>/openai/v1`)} ${dim('for OpenAI clients')}`,
        ...(key
          ? [
              `  API key   ${dim('it is shown this once; `npx berth keys create` makes another')}`,
              '',
              `  export BERTH_KEY=${key}`,
              '',
            ]
          : [`  API key   ${dim('was shown at the first start; `npx berth keys create` makes another')}`]),
        `  Data      ${dataDir}`,
        ...(postgres && postgres.location !== dataDir ? [`  Database  ${postgres.location}`] : []),
        `  Parts     PostgreSQL ${postgres ? '(embedded)' : '(yours)'}, queue in ${parts.REDIS_URL ? 'Redis' : 'PostgreSQL'}, IPFS ${parts.IPFS_API_URL ? 'on Kubo' : '(embedded)'}`,
        ...modelLines(parts.BERTH_MODEL_URL, model),
        '',
        `  ${dim('Pin something:')}`,
        '',
        `  curl ${url}/v3/files/public/pin_by_cid \\`,
        `    -H "Authorization: Bearer $BERTH_KEY" -H "Prefer: wait=10" \\`,
        `    -d '{"cid": "bafkqaekimvwgy3zamzzg63jaijsxe5dibi"}'`,
        '',
        `  ${dim('Bring an agent up:')}`,
        '',
        `  curl ${url}/v0/agents -H "Authorization: Bearer $BERTH_KEY" -d '{"name": "first"}'`,
        '',
        `  ${dim('Ctrl-C stops everything; the data stays.')}`,
        '',
        '',
      ].join('\n'),
    )
  }

  goodbye(): void {
    if (this.#human) process.stdout.write('\n  Stopping.\n')
  }

  /** Prints what the stop waits for; `hint` is what the user can do about it. */
  waiting(what: string[], hint = ''): void {
    if (what.length > 0) process.stdout.write(`  Waiting for ${listed.format(what)}.${hint && ` ${hint}`}\n`)
  }

  stopped(dataDir: string): void {
    if (this.#human) process.stdout.write(`  Stopped. The data is in ${dataDir}.\n`)
  }
}

/** The model of agents, unless BERTH_MODEL_URL names one. */
function modelLines(url: string | undefined, model: FoundModel | undefined): string[] {
  if (url) return []
  const lines = (said: string, hint: string) => [
    `  Model     ${said}`,
    `            ${styleText('dim', hint)}`,
  ]
  if (model)
    return lines(
      `${styleText('bold', model.model)} on ${model.name}, found at ${model.baseUrl}`,
      'BERTH_MODEL selects another model there, BERTH_MODEL_URL another server',
    )
  if (url === '')
    return lines('none, because BERTH_MODEL_URL is empty', "give agents a secret with a provider's key")
  return lines(
    'none: start Ollama, LM Studio or llama.cpp, and then Berth again;',
    "or set BERTH_MODEL_URL, or give agents a secret with a provider's key",
  )
}

/** The same scheme and port on another host. */
function onHost(url: string, host: string): string {
  const { protocol, port } = new URL(url)
  return `${protocol}//${host}${port && `:${port}`}`
}

/** `12:00:01 web  message key=value`, from a pino line; any other line unchanged. */
function short(role: string, line: string): string {
  let entry: Record<string, unknown>
  try {
    entry = JSON.parse(line)
  } catch {
    return `${role.padEnd(ROLE_WIDTH)}${line}`
  }
  const {
    level,
    time,
    msg,
    err,
    req,
    res,
    role: _,
    ...rest
  } = entry as {
    level: number
    time: string
    msg?: string
    err?: { message?: string }
    req?: { method: string; url: string }
    res?: { statusCode: number }
  } & Record<string, unknown>
  const request = req ? `${req.method} ${req.url} ${res?.statusCode ?? ''}` : msg
  const more = Object.entries(rest).map(
    ([key, value]) => `${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`,
  )
  const text = [request, err?.message, ...more].filter(Boolean).join('  ')
  return `${styleText('dim', String(time).slice(11, 19))} ${role.padEnd(ROLE_WIDTH)}${(LEVELS[level] ?? String)(text)}`
}
