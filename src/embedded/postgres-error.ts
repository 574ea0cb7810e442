/** The embedded PostgreSQL cannot start or stop. The message is for the person who typed `npm start`. */
export class PostgresStartError extends Error {
  override name = 'PostgresStartError'
}
