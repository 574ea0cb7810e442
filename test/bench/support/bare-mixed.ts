/** Starts the alternative to a mix of requests: as many processes as Berth has, on the same servers and rows. */
import { fileURLToPath } from 'node:url'
import { freePort, type Running, run, until } from '../../support/processes.ts'
import { endAll, type MixedWorld, type Roles } from './mixed-world.ts'

const PROGRAM = fileURLToPath(new URL('bare-mixed.program.ts', import.meta.url))
const WEBS = 2
const WORKERS = 4
const TABLE = `CREATE TABLE bare_file (id uuid PRIMARY KEY, workspace_id uuid NOT NULL, cid text NOT NULL, name text,
  keyvalues jsonb NOT NULL, status text NOT NULL)`

/** The stack stops it. */
export async function startBareMixed(
  world: MixedWorld,
  stack: AsyncDisposableStack,
): Promise<{ urls: string[]; roles: Roles }> {
  await world.pool.query(TABLE)
  const env = {
    ...process.env,
    DATABASE_URL: world.postgres.url,
    REDIS_URL: world.redis.url,
    ...(world.kubo && { KUBO: world.kubo.apiUrl }),
  }
  const roles = new Map<string, Running>()
  stack.defer(() => endAll(roles))
  for (let i = 1; i <= WORKERS; i++)
    roles.set(`worker ${i}`, run(process.execPath, [PROGRAM, 'worker'], { env }))
  const urls: string[] = []
  for (let i = 1; i <= WEBS; i++) {
    const port = await freePort()
    const web = run(process.execPath, [PROGRAM, 'web'], { env: { ...env, PORT: String(port) } })
    roles.set(`web ${i}`, web)
    const url = `http://127.0.0.1:${port}`
    await until('the bare server answers', async () => {
      if (web.process.exitCode !== null) throw new Error(web.output())
      return (await fetch(`${url}/none`)).status === 404
    })
    urls.push(url)
  }
  return { urls, roles }
}
