/** An example of a route's request and its responses. */
export interface Example {
  request?: unknown
  /** The response: JSON, or text if the route's media type is not JSON. Absent if there is no body. */
  response?: unknown
  /** Other success responses with a body, by status. */
  others?: Record<number, unknown>
  /** Error responses with more fields than `error`, by status. */
  failures?: Record<number, unknown>
  /** The response as JSON lines or events. */
  lines?: string
}
