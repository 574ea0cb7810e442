/** An example of a route's request and its answers. */
export interface Example {
  request?: unknown
  /** The answer: JSON, or text where the route's media type is not JSON. Absent where it has no body. */
  response?: unknown
  /** Other answers of success that have a body of their own, by status. */
  others?: Record<number, unknown>
  /** Answers of failure that have more than `error`, by status. */
  failures?: Record<number, unknown>
  /** The answer as JSON lines or events. */
  lines?: string
}
