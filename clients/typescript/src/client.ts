/** The API as a typed client: one method per HTTP method, with paths, parameters and bodies of `/openapi.json`. */
import createFetchClient, { type Client } from 'openapi-fetch'
import { send } from './retries.ts'
import type { paths } from './schema.ts'

export type Berth = Client<paths>

export interface ClientOptions {
  /** The URL of a Berth, such as `http://localhost:3000`. A page of Berth itself leaves it out. */
  url?: string
  /** An API key, or the token of an agent. */
  key?: string | undefined
  /** Headers of every request. */
  headers?: Record<string, string>
  /** How many times a request that is safe to repeat is sent again: 3 by default. */
  retries?: number
  /** Sends requests instead of the global `fetch`. */
  fetch?: (request: Request) => Promise<Response>
}

/** The URL without slashes at its end. */
export function trimSlashes(url: string): string {
  let end = url.length
  while (url[end - 1] === '/') end--
  return url.slice(0, end)
}

/** A client of one Berth. It sends nothing by itself. */
export function createClient(options: ClientOptions = {}): Berth {
  const { url = '', key, headers, retries = 3, fetch = globalThis.fetch } = options
  return createFetchClient<paths>({
    baseUrl: trimSlashes(url),
    headers: { ...(key && { authorization: `Bearer ${key}` }), ...headers },
    fetch: (request) => send(request, { retries, fetch }),
  })
}
