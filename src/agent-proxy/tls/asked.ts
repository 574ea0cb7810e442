/** A request on a terminated connection, whatever its version of HTTP, and the response of a host to it. */
import type { IncomingMessage } from 'node:http'
import type { Transform } from 'node:stream'
import type { Body } from '../../../agentd/relay.ts'
import type { ProxyError } from '../dial.ts'
import type { Detached } from '../listener.ts'

export interface Asked {
  method: string
  /** Path and query. */
  target: string
  /** Each `Host` and `:authority`. */
  authorities: string[]
  /** Headers to forward without `Host`: names and values in turn. */
  headers: string[]
  hasBody: boolean
  body: Body
  /** Takes the client's connection, and what it sent after the request, if it asks for a WebSocket. */
  takeWebSocket?(): Detached
  /** True if it asks for another upgrade. */
  asksForUpgrade: boolean
  /** True for a client that reads trailers, which calls of gRPC end with. */
  isGrpc: boolean
  /** True once the client is gone, or has the whole response. */
  isOver(): boolean
  onOver(over: () => void): void
  /** Sends a response. Resolves once it has ended; a truncated one does not look complete. */
  pass(answer: Answered): Promise<void>
  refuse(refusal: ProxyError): void
  /** Ends the connection as if the host had. */
  abandon(): void
}

export interface Answered {
  status: number
  message: string
  /** Headers to forward: names and values in turn. */
  headers: string[]
  hasBody: boolean
  body: Body
  /** Trailers, once the body has ended: names and values in turn. */
  trailers(): string[]
  /** Changes the body. */
  through?: Transform
}

export interface UpstreamRequest {
  method: string
  target: string
  /** Names and values in turn, without `Host`. */
  headers: string[]
  body: Body | undefined
  /** Calls `over` once nobody waits for the response. */
  onOver(over: () => void): void
  /** The protocol of an upgrade. */
  upgrade?: string
}

/** A response whose body is still to come. */
export type Answer = Body &
  Pick<IncomingMessage, 'statusCode' | 'statusMessage' | 'headers' | 'rawHeaders' | 'rawTrailers'> & {
    /** True if it is known to have no body. */
    isEmpty?: boolean
  }
