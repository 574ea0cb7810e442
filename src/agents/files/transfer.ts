/** Files between the API and an agent's disk. agentd confines paths to the agent's root, even through links. */
import { extname, posix } from 'node:path'
import { type Readable, Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { create as contentDisposition } from 'content-disposition'
import type { Response } from 'express'
import type { z } from 'zod'
import { AGENT_ROOT } from '../../../agentd/protocol.ts'
import { ApiError, badRequest, notFound } from '../../errors.ts'
import { within } from '../../lib/signals.ts'
import type { Agent } from '../agent.ts'
import type { AgentdClient, AgentdError } from '../agentd-client.ts'
import { type Answers, askAgent } from '../engine-call.ts'
import { listing, written } from './agent-file-schema.ts'
import { tooLarge } from './body.ts'

const READ_MS = 120_000
const WRITE_MS = 60_000
const UPLOADS = `${AGENT_ROOT}/workspace/uploads`
/** Enough for a folder of ten thousand entries with the longest names. */
const LISTING_BYTES = 8_388_608

const changedMeanwhile = (cause: AgentdError) =>
  new ApiError(412, 'changed_meanwhile', 'The file was changed in the meantime', { cause })
/** Usually agentd's message already names the field. */
const wrongPath = (error: AgentdError) => badRequest(error.message.replace(/^(path: )?/, 'path: '))
const answers: Answers = {
  not_found: () => notFound('There is no such file'),
  outside: () => badRequest(`path: must not lead out of ${AGENT_ROOT}`),
  not_a_file: wrongPath,
  bad_request: wrongPath,
  too_large: tooLarge,
  conflict: changedMeanwhile,
  disk_full: (cause) => new ApiError(500, 'disk_full', "The agent's disk is full", { cause }),
}

export interface Place {
  agentd: AgentdClient
  agent: Agent
  /** Fires when the client has disconnected. */
  signal: AbortSignal
}

/**
 * Sends a file's bytes as the response. An agent's pages have no place on the API's origin, so browsers are told to
 * download files, and to sandbox any that they show.
 * @throws ApiError 404, 400 if it is not a file or out of reach, 413 for more than `maxBytes`; before the first byte.
 */
export async function sendFile(
  { agentd, agent, signal }: Place,
  path: string,
  maxBytes: number,
  res: Response,
): Promise<void> {
  const gone = within(READ_MS, signal)
  const query = new URLSearchParams({ path, max: String(maxBytes) })
  const file = await askAgent(
    agent,
    'File could not be read',
    () => agentd.stream(agent, { path: `/v1/file?${query}`, signal: gone }),
    answers,
  )
  const { etag } = file.headers
  const size = Number(file.headers['content-length'] ?? Number.NaN)
  if (size > maxBytes) {
    file.destroy()
    throw tooLarge()
  }
  res.status(200).set({
    'Content-Disposition': contentDisposition(posix.basename(path).replace(/[\p{Cc}\\]/gu, '_')),
    'Content-Security-Policy': "sandbox; default-src 'none'",
    'X-Content-Type-Options': 'nosniff',
    'Cache-Control': 'no-store',
    ...(etag && /^"[\w.-]{1,100}"$/.test(etag) && { ETag: etag }),
    ...(!Number.isNaN(size) && { 'Content-Length': String(size) }),
  })
  res.type(extname(path) || 'application/octet-stream')
  // Cuts the connection if a part is missing: a response that ends properly is the whole file.
  await pipeline(file, atMost(maxBytes), res).catch(() => res.destroy())
}

/** Forwards bytes; fails above `maxBytes`, in case agentd did not state the size. */
function atMost(maxBytes: number): Transform {
  let left = maxBytes
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      left -= chunk.length
      done(left < 0 ? new Error('agentd sent more than was asked for') : null, chunk)
    },
  })
}

/** A folder's entries, by name. @throws ApiError as {@link sendFile} */
export function listFolder(
  { agentd, agent, signal }: Place,
  path: string,
): Promise<z.output<typeof listing>> {
  const query = new URLSearchParams({ path })
  return askAgent(
    agent,
    'Folder could not be read',
    () => agentd.json(agent, { path: `/v1/list?${query}`, signal, maxBytes: LISTING_BYTES }, listing),
    answers,
  )
}

/**
 * Puts a file into the uploads of the agent's workspace, and replaces a file with the same name, so repeats change
 * nothing.
 * @returns its path.
 */
export async function storeUpload(
  { agentd, agent, signal }: Place,
  filename: string,
  content: Buffer,
): Promise<string> {
  const path = `${UPLOADS}/${filename}`
  const query = new URLSearchParams({ path })
  const request = { method: 'PUT', path: `/v1/file?${query}`, body: content, timeoutMs: WRITE_MS, signal }
  await askAgent(agent, 'File could not be written', () => agentd.json(agent, request), answers)
  return path
}

/**
 * Writes a file, completely or not at all; creates missing folders.
 * @param version that the caller saw, in `ETag` format; empty if the file must not exist, undefined if any version will
 *   do.
 * @throws ApiError 412 if the version differs; 413 for more than `maxBytes`.
 */
export async function writeFile(
  { agentd, agent, signal }: Place,
  path: string,
  content: Readable,
  { maxBytes, version }: { maxBytes: number; version: string | undefined },
): Promise<z.output<typeof written>> {
  const query = new URLSearchParams({
    path,
    max: String(maxBytes),
    ...(version !== undefined && { version }),
  })
  const request = { method: 'PUT', path: `/v1/file?${query}`, body: content, timeoutMs: WRITE_MS, signal }
  return askAgent(agent, 'File could not be written', () => agentd.json(agent, request, written), {
    ...answers,
    // agentd also waits for a slow client. If the whole body has arrived, the agent is the slow one.
    timeout: (cause) =>
      content.readableEnded
        ? undefined
        : new ApiError(408, 'timeout', `body: did not arrive within ${WRITE_MS / 1000} seconds`, { cause }),
  })
}

/** Deletes a file, or a folder with its contents. @throws ApiError 404, 400 */
export async function removeFile({ agentd, agent, signal }: Place, path: string): Promise<void> {
  const query = new URLSearchParams({ path })
  const request = { method: 'DELETE', path: `/v1/file?${query}`, timeoutMs: WRITE_MS, signal }
  await askAgent(agent, 'File could not be deleted', () => agentd.json(agent, request), answers)
}

/** The API's name for a path: absolute. */
export const absolutePath = (path: string): string => posix.resolve(AGENT_ROOT, path)
