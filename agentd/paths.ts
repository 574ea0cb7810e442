import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'

/** The agent's home in the API's paths, whatever the runtime. */
const API_HOME = '/home/node'

/** Folders and files of the agent on this machine. */
export interface Paths {
  /** Corresponds to /home/node. */
  home: string
  /** The agent's own root, a git repository: `<home>/clawd`. */
  root: string
  /** The engine's state: `<home>/.openclaw`. */
  state: string
  /** `<home>/.openclaw/openclaw.json`. */
  configFile: string
  /** For temporary files of the engine, scripts and consoles, and for the logs of scripts. */
  tmp: string
}

/**
 * @param home the agent's home.
 * @param tmp for temporary files: /tmp in a container. Otherwise the folder that agentd got as TMPDIR, because several
 *   agents share the machine.
 */
export function agentPaths(home: string, tmp = tmpdir()): Paths {
  const state = join(home, '.openclaw')
  return { home, root: join(home, 'clawd'), state, configFile: join(state, 'openclaw.json'), tmp }
}

/**
 * Maps an absolute path of the API to one of this machine: /home/node/x becomes `<home>/x`, /tmp/x becomes `<tmp>/x`,
 * any other path stays. It only rewrites names: the caller has to check access, including links.
 */
export function realPath(paths: Paths, apiPath: string): string {
  for (const [api, real] of roots(paths)) {
    if (apiPath === api || apiPath.startsWith(`${api}/`)) return join(real, apiPath.slice(api.length))
  }
  return apiPath
}

/** The opposite of {@link realPath}: the API's path for a path of this machine. */
export function apiPath(paths: Paths, real: string): string {
  for (const [api, root] of roots(paths)) {
    const below = relative(root, real)
    if (below === '') return api
    if (below !== '..' && !below.startsWith('../')) return join(api, below)
  }
  return real
}

function roots(paths: Paths): [string, string][] {
  return [
    [API_HOME, paths.home],
    ['/tmp', paths.tmp],
  ]
}
