/** Summaries of words that several commands begin with. */
export const FAMILIES: Record<string, string> = {
  agents: 'AI agents: create them, talk to them, run commands in them',
  'agents files': 'files of an agent',
  'agents tasks': 'work that an agent does on a schedule',
  'agents secrets': 'environment variables of an agent',
  'agents snapshots': 'the history of an agent’s workspace',
  files: 'files on IPFS: add, pin, get, share',
  pins: 'requests to pin a CID',
  groups: 'groups of files',
  operations: 'long work: wait for it, cancel it',
  webhooks: 'webhooks, and their events on this machine',
  profiles: 'the Berths you are signed in to',
}
