/* Made from prisma/schema.prisma by `npm run generate`. */

export const Plan = {
  name: 'text',
  agentLimit: 'int4?',
  secretLimit: 'int4?',
  channels: 'bool',
  customDomains: 'bool',
  pinByCid: 'bool',
  maxFileBytes: 'int8?',
  storageBytes: 'int8?',
  requestsPerMinute: 'int4?',
  hotSwaps: 'bool',
  agentDiskMb: 'int4?',
  replicas: 'int4?',
  modelUsdPerMonth: 'numeric?',
  modelTokensPerMonth: 'int8?',
} as const

export const Workspace = {
  id: 'uuid',
  name: 'text',
  planName: 'text',
  createdAt: 'timestamptz',
} as const

export const User = {
  id: 'uuid',
  name: 'text',
  createdAt: 'timestamptz',
  isAdmin: 'bool',
} as const

export const Membership = {
  workspaceId: 'uuid',
  userId: 'uuid',
  role: 'text',
  createdAt: 'timestamptz',
} as const

export const ApiKey = {
  id: 'uuid',
  workspaceId: 'uuid',
  userId: 'uuid?',
  name: 'text',
  publicKey: 'text',
  secretHash: 'bytea',
  scopes: 'text[]',
  maxUses: 'int4?',
  uses: 'int4',
  createdAt: 'timestamptz',
  updatedAt: 'timestamptz',
  expiresAt: 'timestamptz?',
  revokedAt: 'timestamptz?',
  lastUsedAt: 'timestamptz?',
  audience: 'text?',
} as const

export const Session = {
  keyId: 'uuid',
  userAgent: 'text?',
  cookieId: 'uuid?',
} as const

export const LoginLink = {
  tokenHash: 'bytea',
  workspaceId: 'uuid',
  userId: 'uuid',
  expiresAt: 'timestamptz',
} as const

export const Passkey = {
  id: 'uuid',
  userId: 'uuid',
  name: 'text',
  rpId: 'text',
  credentialId: 'text',
  publicKey: 'bytea',
  counter: 'int8',
  transports: 'text[]',
  synced: 'bool',
  createdAt: 'timestamptz',
  lastUsedAt: 'timestamptz?',
} as const

export const PasskeyChallenge = {
  challengeHash: 'bytea',
  rpId: 'text',
  userId: 'uuid?',
  expiresAt: 'timestamptz',
} as const

export const OidcIdentity = {
  id: 'uuid',
  userId: 'uuid',
  issuer: 'text',
  subject: 'text',
  email: 'text?',
  createdAt: 'timestamptz',
  lastUsedAt: 'timestamptz?',
  unlinkedAt: 'timestamptz?',
} as const

export const OidcTransaction = {
  tokenHash: 'bytea',
  state: 'text',
  nonce: 'text',
  codeVerifier: 'text',
  workspaceId: 'uuid?',
  invitationHash: 'bytea?',
  userId: 'uuid?',
  expiresAt: 'timestamptz',
} as const

export const Invitation = {
  id: 'uuid',
  workspaceId: 'uuid',
  role: 'text',
  email: 'text?',
  tokenHash: 'bytea',
  invitedBy: 'uuid',
  createdAt: 'timestamptz',
  expiresAt: 'timestamptz',
  acceptedAt: 'timestamptz?',
  acceptedBy: 'uuid?',
  revokedAt: 'timestamptz?',
} as const

export const Feedback = {
  id: 'uuid',
  workspaceId: 'uuid',
  userId: 'uuid',
  keyId: 'uuid?',
  agentId: 'text?',
  message: 'text',
  createdAt: 'timestamptz',
} as const

export const Audit = {
  id: 'uuid',
  createdAt: 'timestamptz',
  workspaceId: 'uuid?',
  via: 'text',
  userId: 'uuid?',
  keyId: 'uuid?',
  agentId: 'text?',
  action: 'text',
  method: 'text?',
  route: 'text?',
  resource: 'text',
  status: 'int4?',
  errorCode: 'text?',
  requestId: 'text?',
  address: 'text?',
  userAgent: 'text?',
} as const

export const Webhook = {
  id: 'uuid',
  workspaceId: 'uuid',
  url: 'text',
  events: 'text[]',
  agentId: 'text?',
  groupId: 'uuid?',
  secret: 'bytea',
  formerSecret: 'bytea?',
  formerUntil: 'timestamptz?',
  createdAt: 'timestamptz',
  updatedAt: 'timestamptz',
  disabledReason: 'text?',
  failingSince: 'timestamptz?',
  silences: 'int4',
  pausedUntil: 'timestamptz?',
  dueAt: 'timestamptz?',
} as const

export const WebhookDelivery = {
  id: 'uuid',
  webhookId: 'uuid',
  type: 'text',
  body: 'text',
  createdAt: 'timestamptz',
  attempts: 'int4',
  nextAttemptAt: 'timestamptz?',
  lastAttemptAt: 'timestamptz?',
  endedAt: 'timestamptz?',
  status: 'int4?',
  response: 'text?',
  error: 'text?',
} as const

export const Operation = {
  id: 'uuid',
  workspaceId: 'uuid',
  kind: 'text',
  queue: 'text',
  targetId: 'uuid',
  concurrencyKey: 'text?',
  state: 'text',
  step: 'text?',
  progress: 'jsonb?',
  error: 'text?',
  errorCode: 'text?',
  errorCause: 'text?',
  epoch: 'int4',
  version: 'int4',
  attempts: 'int4',
  errorCount: 'int4',
  worker: 'uuid?',
  leaseUntil: 'timestamptz?',
  nextAttemptAt: 'timestamptz',
  dispatchedAt: 'timestamptz?',
  dispatches: 'int4',
  cancelRequested: 'bool',
  idempotencyKey: 'text?',
  fingerprint: 'bytea?',
  createdAt: 'timestamptz',
  startedAt: 'timestamptz?',
  finishedAt: 'timestamptz?',
  agentId: 'text?',
  input: 'jsonb?',
  result: 'jsonb?',
} as const

export const Repair = {
  id: 'int8',
  loop: 'text',
  reason: 'text',
  target: 'text',
  createdAt: 'timestamptz',
} as const

export const RepairTotal = {
  loop: 'text',
  reason: 'text',
  count: 'int8',
} as const

export const GarbageCollection = {
  network: 'text',
  releasedAt: 'timestamptz?',
  startedAt: 'timestamptz?',
  runs: 'int8',
  removedBlocks: 'int8',
  removedBytes: 'int8',
} as const

export const NodeStore = {
  network: 'text',
  id: 'uuid',
} as const

export const NodePack = {
  id: 'uuid',
  network: 'text',
  state: 'text',
  bytes: 'int8',
  changedAt: 'timestamptz',
} as const

export const NodeBlock = {
  network: 'text',
  hash: 'bytea',
  size: 'int4',
  packId: 'uuid?',
  at: 'int4?',
  bytes: 'bytea?',
  isNode: 'bool',
  linkless: 'int4?',
  usedAt: 'timestamptz',
} as const

export const NodeRoot = {
  network: 'text',
  cid: 'text',
} as const

export const NodeMark = {
  id: 'uuid',
  network: 'text',
  cid: 'text?',
  startedAt: 'timestamptz',
  renewedAt: 'timestamptz',
} as const

export const Worker = {
  id: 'uuid',
  concurrency: 'jsonb',
  ipfs: 'jsonb',
  startedAt: 'timestamptz',
  seenAt: 'timestamptz',
  ipfsPrivate: 'jsonb?',
  parts: 'jsonb?',
  version: 'text?',
} as const

export const Installation = {
  id: 'bool',
  instance: 'text',
  former: 'text[]',
  createdAt: 'timestamptz',
} as const

export const Event = {
  id: 'int8',
  type: 'text',
  createdAt: 'timestamptz',
  workspaceId: 'uuid',
  resourceType: 'text',
  resourceId: 'text',
  data: 'jsonb',
} as const

export const FileGroup = {
  id: 'uuid',
  workspaceId: 'uuid',
  network: 'text',
  name: 'text',
  isPublic: 'bool',
  createdAt: 'timestamptz',
} as const

export const File = {
  id: 'uuid',
  workspaceId: 'uuid',
  network: 'text',
  status: 'text',
  cid: 'text',
  cidV1: 'text',
  name: 'text?',
  keyvalues: 'jsonb',
  groupId: 'uuid?',
  hostNodes: 'text[]',
  userId: 'uuid?',
  size: 'int8?',
  numberOfFiles: 'int4?',
  mimeType: 'text?',
  createdAt: 'timestamptz',
  pinnedAt: 'timestamptz?',
  removedAt: 'timestamptz?',
  expiresAt: 'timestamptz?',
  hostNodesOptional: 'bool',
} as const

export const SignedUpload = {
  id: 'uuid',
  keyId: 'uuid',
  fixed: 'jsonb',
  expiresAt: 'timestamptz',
} as const

export const Upload = {
  id: 'uuid',
  workspaceId: 'uuid',
  keyId: 'uuid',
  tokenHash: 'bytea',
  length: 'int8',
  metadata: 'text',
  details: 'jsonb',
  fileId: 'uuid?',
  cid: 'text?',
  refusal: 'jsonb?',
  leaseId: 'uuid?',
  leaseUntil: 'timestamptz?',
  leaseWanted: 'bool',
  createdAt: 'timestamptz',
  expiresAt: 'timestamptz',
  received: 'int8',
} as const

export const UploadPart = {
  uploadId: 'uuid',
  at: 'int8',
  bytes: 'int4',
  object: 'uuid',
} as const

export const UploadReservation = {
  id: 'uuid',
  workspaceId: 'uuid',
  bytes: 'int8',
  expiresAt: 'timestamptz',
} as const

export const KeptContent = {
  network: 'text',
  files: 'int8',
  bytes: 'int8',
} as const

export const StoredContent = {
  workspaceId: 'uuid',
  files: 'int8',
  bytes: 'int8',
} as const

export const Gateway = {
  id: 'uuid',
  workspaceId: 'uuid',
  domain: 'text',
  hotSwaps: 'bool',
  innerCids: 'bool',
  cidHosts: 'bool',
  showsSignatures: 'bool',
  createdAt: 'timestamptz',
} as const

export const GatewayRequestCount = {
  gatewayId: 'uuid',
  day: 'date',
  cid: 'text',
  fileName: 'text',
  userAgent: 'text',
  referrer: 'text',
  status: 'int4',
  requests: 'int8',
  bytes: 'int8',
} as const

export const GatewayAccessToken = {
  id: 'uuid',
  gatewayId: 'uuid',
  tokenHash: 'bytea',
  createdAt: 'timestamptz',
} as const

export const CidSignature = {
  workspaceId: 'uuid',
  network: 'text',
  cidV1: 'text',
  signature: 'text',
  address: 'text',
  createdAt: 'timestamptz',
} as const

export const Swap = {
  id: 'int8',
  workspaceId: 'uuid',
  network: 'text',
  cidV1: 'text',
  mappedCid: 'text?',
  mappedCidV1: 'text?',
  createdAt: 'timestamptz',
} as const

export const Agent = {
  id: 'uuid',
  agentId: 'text',
  workspaceId: 'uuid',
  userId: 'uuid',
  name: 'text',
  description: 'text?',
  vibe: 'text?',
  emoji: 'text?',
  userName: 'text?',
  userEmail: 'text?',
  engine: 'text',
  engineVersion: 'text',
  gatewayToken: 'text',
  status: 'text',
  statusReason: 'text?',
  address: 'text?',
  epoch: 'int4',
  startOperationId: 'uuid?',
  appliedSecretVersions: 'jsonb',
  skillProblems: 'jsonb',
  scripts: 'jsonb',
  createdAt: 'timestamptz',
  updatedAt: 'timestamptz',
  deletedAt: 'timestamptz?',
  purgedAt: 'timestamptz?',
  syncedAt: 'timestamptz?',
  fileManifest: 'text?',
  templateId: 'text?',
  localModel: 'jsonb?',
  forkedFrom: 'text?',
  protocols: 'text[]',
  manifest: 'text?',
  taskRunsSince: 'timestamptz',
  modelKeyHash: 'bytea?',
  proxyKeyHash: 'bytea?',
  modelPausedAt: 'timestamptz?',
  modelPausedBy: 'uuid?',
} as const

export const A2aTask = {
  id: 'uuid',
  agentId: 'uuid',
  contextId: 'uuid',
  state: 'text',
  reason: 'text?',
  createdAt: 'timestamptz',
  changedAt: 'timestamptz',
} as const

export const EngineState = {
  agentId: 'uuid',
  ciphertext: 'bytea?',
  pending: 'bool',
  awaits: 'uuid?',
} as const

export const AgentUsage = {
  agentId: 'uuid',
  at: 'timestamptz',
  memoryBytes: 'int8',
  memoryLimitBytes: 'int8?',
} as const

export const Secret = {
  id: 'uuid',
  workspaceId: 'uuid',
  userId: 'uuid',
  name: 'text',
  type: 'text',
  ciphertext: 'bytea',
  modelKeyHash: 'bytea?',
  version: 'int4',
  hosts: 'text[]',
  viaAs: 'text?',
  viaName: 'text?',
  placeholder: 'text?',
  placeholderVersion: 'int4?',
  brokeredVersion: 'int4?',
  createdAt: 'timestamptz',
  updatedAt: 'timestamptz',
} as const

export const AgentSecret = {
  agentId: 'uuid',
  secretId: 'uuid',
  attachedAt: 'timestamptz',
} as const

export const AgentChannel = {
  agentId: 'uuid',
  channel: 'text',
  settings: 'jsonb',
  ciphertext: 'bytea?',
  updatedAt: 'timestamptz',
} as const

export const NotedTaskRun = {
  agentId: 'uuid',
  runId: 'text',
  endedAt: 'timestamptz',
} as const

export const EngineVersion = {
  engine: 'text',
  version: 'text',
  runtime: 'text',
  obstacle: 'text?',
} as const

export const Snapshot = {
  id: 'uuid',
  agentId: 'uuid',
  workspaceId: 'uuid',
  userId: 'uuid',
  network: 'text',
  cid: 'text',
  commitSha: 'text',
  commitObject: 'bytea',
  treeSha: 'text',
  executables: 'text[]',
  extras: 'jsonb?',
  changeSummary: 'text?',
  contentDiff: 'text?',
  createdAt: 'timestamptz',
} as const

export const Skill = {
  id: 'uuid',
  workspaceId: 'uuid',
  userId: 'uuid',
  name: 'text',
  description: 'text?',
  slug: 'text?',
  envVars: 'jsonb',
  createdAt: 'timestamptz',
  updatedAt: 'timestamptz',
} as const

export const SkillVersion = {
  id: 'uuid',
  skillId: 'uuid',
  workspaceId: 'uuid',
  network: 'text',
  cid: 'text',
  version: 'text?',
  fileId: 'uuid?',
  createdAt: 'timestamptz',
} as const

export const AgentSkill = {
  agentId: 'uuid',
  skillId: 'uuid',
  versionId: 'uuid',
  attachedAt: 'timestamptz',
} as const

export const Template = {
  id: 'text',
  workspaceId: 'uuid',
  userId: 'uuid',
  slug: 'text',
  name: 'text',
  details: 'jsonb',
  network: 'text',
  snapshotCid: 'text',
  executables: 'text[]',
  createdAt: 'timestamptz',
  updatedAt: 'timestamptz',
  archivedAt: 'timestamptz?',
} as const

export const Domain = {
  id: 'uuid',
  agentId: 'uuid?',
  workspaceId: 'uuid',
  userId: 'uuid',
  subdomain: 'text?',
  customDomain: 'text?',
  targetPort: 'int4?',
  protected: 'bool',
  status: 'text',
  checkedAt: 'timestamptz?',
  verifiedAt: 'timestamptz?',
  createdAt: 'timestamptz',
  updatedAt: 'timestamptz',
  gatewayId: 'uuid?',
  failure: 'text?',
} as const

export const SubdomainHolder = {
  subdomain: 'text',
  workspaceId: 'uuid',
} as const

export const AgentRoute = {
  agentId: 'uuid',
  pathPrefix: 'text',
  port: 'int4',
  protected: 'bool',
} as const

export const ModelPrice = {
  provider: 'text',
  model: 'text',
  effectiveFrom: 'date',
  input: 'numeric',
  output: 'numeric',
  cachedInput: 'numeric?',
  cacheWrite: 'numeric?',
  reasoning: 'numeric?',
  longAbove: 'int4?',
  longInput: 'numeric?',
  longOutput: 'numeric?',
  maxOutput: 'int4?',
  updatedAt: 'timestamptz',
} as const

export const ModelBudget = {
  id: 'uuid',
  workspaceId: 'uuid',
  agentId: 'uuid?',
  usdPerDay: 'numeric?',
  usdPerMonth: 'numeric?',
  tokensPerDay: 'int8?',
  tokensPerMonth: 'int8?',
  requestsPerMinute: 'int4?',
  minute: 'timestamptz?',
  minuteRequests: 'int4',
  updatedAt: 'timestamptz',
} as const

export const EgressPolicy = {
  id: 'uuid',
  workspaceId: 'uuid',
  agentId: 'uuid?',
  mode: 'text',
  allow: 'text[]',
  deny: 'text[]',
  updatedAt: 'timestamptz',
} as const

export const EgressCount = {
  agentId: 'uuid',
  day: 'date',
  host: 'text',
  requests: 'int8',
  denied: 'int8',
  bytesSent: 'int8',
  bytesReceived: 'int8',
} as const

export const ModelLease = {
  id: 'uuid',
  workspaceId: 'uuid',
  agentId: 'uuid',
  proxy: 'uuid',
  day: 'date',
  state: 'text',
  usd: 'numeric',
  tokens: 'int8',
  openUsd: 'numeric',
  openTokens: 'int8',
  seq: 'int4',
  expiresAt: 'timestamptz',
} as const

export const ModelSpending = {
  workspaceId: 'uuid',
  agentId: 'uuid',
  day: 'date',
  provider: 'text',
  model: 'text',
  session: 'text',
  requests: 'int8',
  errors: 'int8',
  input: 'int8',
  output: 'int8',
  cachedInput: 'int8',
  cacheWrite: 'int8',
  reasoning: 'int8',
  usd: 'numeric',
  firstByteMs: 'int8',
  totalMs: 'int8',
  estimated: 'int8',
  estimatedUsd: 'numeric',
} as const

export const ModelDay = {
  workspaceId: 'uuid',
  day: 'date',
  agentId: 'uuid',
  usd: 'numeric',
  tokens: 'int8',
} as const
