/** The limits of a workspace; `null` is no limit. */
export interface Plan {
  name: string
  pinByCid: boolean
  maxFileBytes: number | null
  storageBytes: number | null
  requestsPerMinute: number | null
  agentLimit: number | null
  secretLimit: number | null
  channels: boolean
  customDomains: boolean
}

/** A {@link Plan} of the row `p`. */
export const PLAN = `json_build_object('name', p.name, 'pinByCid', p.pin_by_cid, 'maxFileBytes', p.max_file_bytes,
  'storageBytes', p.storage_bytes, 'requestsPerMinute', p.requests_per_minute, 'agentLimit', p.agent_limit,
  'secretLimit', p.secret_limit, 'channels', p.channels, 'customDomains', p.custom_domains)`
