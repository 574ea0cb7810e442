/** Set-ups of programs for a Berth, as they are pasted. `docs/mcp.md` has the same ones. */

export interface SetUp {
  name: string
  /** Where it is pasted: a file, or a shell. */
  place: string
  text: string
}

const json = (value: unknown) => JSON.stringify(value, null, 2)
/** A variable in a configuration. */
const variable = (name: string) => `\${${name}}`

/** Clients of the Model Context Protocol. @param withKey false for clients that open the browser to get a key. */
export function mcpSetUps(berth: string, withKey: boolean): SetUp[] {
  const url = `${berth}/mcp`
  const headers = (key: string) => withKey && { headers: { Authorization: `Bearer ${key}` } }
  const input = { type: 'promptString', id: 'berth-key', description: 'API key of Berth', password: true }
  return [
    {
      name: 'Claude Code',
      place: '.mcp.json',
      text: json({ mcpServers: { berth: { type: 'http', url, ...headers(variable('BERTH_KEY')) } } }),
    },
    {
      name: 'Cursor',
      place: '.cursor/mcp.json',
      text: json({ mcpServers: { berth: { url, ...headers(variable('env:BERTH_KEY')) } } }),
    },
    {
      name: 'VS Code',
      place: '.vscode/mcp.json',
      text: json({
        ...(withKey && { inputs: [input] }),
        servers: { berth: { type: 'http', url, ...headers(variable('input:berth-key')) } },
      }),
    },
  ]
}

/** The command line and the API. */
export const otherSetUps = (berth: string): SetUp[] => [
  {
    name: 'Command line',
    place: 'shell',
    text: `berth login ${berth}\nberth agents ls`,
  },
  {
    name: 'API',
    place: 'shell',
    text: `read -rs BERTH_KEY && export BERTH_KEY\ncurl --oauth2-bearer "$BERTH_KEY" ${berth}/v0/me`,
  },
]
