/** The default folder of a console: the agent's root. */
export const ROOT = '/home/node/clawd'
const HOME = '/home/node'

/** The folder of a line that consists only of `cd`; undefined for any other line, which a shell runs. */
export function cdArgument(line: string): string | undefined {
  const [, double, single, plain] =
    /^\s*cd(?:\s+(?:"([^"$`\\]+)"|'([^']+)'|([^\s"'$`\\;&|<>(){}*?#]+)))?\s*$/.exec(line) ?? []
  if (/^\s*cd\s*$/.test(line)) return ROOT
  return double ?? single ?? plain?.replace(/^~(?=\/|$)/, HOME)
}

/** The folder that `cd` leads to, as an API path. */
export function resolveFolder(from: string, argument: string): string {
  const names: string[] = []
  for (const name of (argument.startsWith('/') ? argument : `${from}/${argument}`).split('/')) {
    if (name === '..') names.pop()
    else if (name !== '' && name !== '.') names.push(name)
  }
  return `/${names.join('/')}`
}

/** The folder as shown in the prompt. */
export const shownFolder = (path: string): string =>
  path === HOME || path.startsWith(`${HOME}/`) ? `~${path.slice(HOME.length)}` : path
