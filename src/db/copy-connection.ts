/** Connections for COPY, by which backups read and write whole tables as streams. */
import pg from 'pg'

export type CopyConnection = pg.Client

export const quoteIdentifier = (name: string): string => pg.escapeIdentifier(name)

/** Runs `work` on a connection of its own, without limits of time: a table may have millions of rows. */
export async function withCopyConnection<T>(
  url: string,
  work: (client: CopyConnection) => Promise<T>,
): Promise<T> {
  const client = new pg.Client({ connectionString: url, keepAlive: true, application_name: 'berth-backup' })
  client.on('error', () => {})
  await client.connect()
  try {
    // Values as text that reads the same everywhere.
    await client.query(`SET client_encoding = 'UTF8'; SET datestyle = 'ISO'; SET intervalstyle = 'postgres';
      SET timezone = 'UTC'; SET bytea_output = 'hex'; SET extra_float_digits = 1; SET statement_timeout = 0`)
    return await work(client)
  } finally {
    await client.end().catch(() => {})
  }
}
