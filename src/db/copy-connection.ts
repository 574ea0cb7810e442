/** Connections for COPY, with which backups read and write whole tables as streams. */
import pg from 'pg'

export type CopyConnection = pg.Client

export const quoteIdentifier = (name: string): string => pg.escapeIdentifier(name)

/** Runs `work` on a separate connection without time limits: a table may have millions of rows. */
export async function withCopyConnection<T>(
  url: string,
  work: (client: CopyConnection) => Promise<T>,
): Promise<T> {
  const client = new pg.Client({ connectionString: url, keepAlive: true, application_name: 'berth-backup' })
  client.on('error', () => {})
  await client.connect()
  try {
    // Makes the text format of values independent of server settings.
    await client.query(`SET client_encoding = 'UTF8'; SET datestyle = 'ISO'; SET intervalstyle = 'postgres';
      SET timezone = 'UTC'; SET bytea_output = 'hex'; SET extra_float_digits = 1; SET statement_timeout = 0`)
    return await work(client)
  } finally {
    await client.end().catch(() => {})
  }
}
