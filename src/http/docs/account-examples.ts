/** Examples for the routes of workspaces, members and keys; see `examples.ts`. */
import type { Example } from './example.ts'

export const WORKSPACE = '0193a1af-90d1-7c22-8e4b-7f30a1c5d2e9'
const OWNER = '0193a1b0-4410-7f6e-8d27-c05b9e61a3f2'
const MEMBER = '0193a1bf-02c8-7d15-93fe-6b1c2d4e5f60'

export const PLAN_EXAMPLE = {
  name: 'pro',
  agentLimit: 20,
  secretLimit: 500,
  channels: true,
  customDomains: true,
  pinByCid: true,
  hotSwaps: true,
  maxFileBytes: 26_843_545_600,
  storageBytes: 1_099_511_627_776,
  requestsPerMinute: 600,
  agentDiskMb: null,
}

const workspace = {
  id: WORKSPACE,
  name: 'catalogues',
  createdAt: '2026-11-21T10:30:51.204Z',
  plan: PLAN_EXAMPLE,
  role: 'owner',
  usage: { files: 128, bytes: 734_003_200 },
}
const member = { id: MEMBER, name: 'Ada', role: 'member' }

const invitation = {
  id: '0193a1c9-3b50-7e41-a7d6-0c9f52e81b34',
  role: 'member',
  email: 'ada@example.com',
  state: 'pending',
  invitedBy: OWNER,
  acceptedBy: null,
  createdAt: '2026-11-21T11:02:10.480Z',
  expiresAt: '2026-11-28T11:02:10.476Z',
}
const INVITATION_TOKEN = 'invite_Zk3vRzA2yq0oM1bJ7kLwPZ8e5t9dXcQfGhUiSnVmYrT'
const accepted = {
  data: {
    workspace: { id: WORKSPACE, name: 'catalogues' },
    user: { id: MEMBER, name: 'Ada' },
    role: 'member',
    token: 'eyJhbGciOiJIUzI1NiJ9.eyJqdGkiOiIwMTkzYTFjOSJ9.c2lnbmF0dXJl',
  },
}

const entries = [
  {
    id: '0193a1d0-8a3e-7b52-9c64-e1f70b2d9a58',
    createdAt: '2026-11-21T11:10:22.718Z',
    workspaceId: WORKSPACE,
    via: 'key',
    user: { id: MEMBER, name: 'Ada' },
    keyId: '0193a1bf-7e33-7f08-b2c1-94a5d6e7f801',
    agentId: null,
    action: 'createSecret',
    method: 'POST',
    route: '/v0/secrets',
    resource: 'secrets/0193a1d0-8a3c-7d6f-8e15-3b4a9c0d7f26',
    status: 201,
    errorCode: null,
    requestId: '5f3d0c9be84d4c5f8e1d7a92b06c3f41',
    address: '203.0.113.20',
    userAgent: 'curl/8.5.0',
  },
]
export const AUDIT_EXAMPLE = {
  response: { data: { entries, next_page_token: '' } },
  lines: `${JSON.stringify(entries[0])}\n`,
}

const session = {
  id: '0193a1d0-7c14-7e90-b2a1-3f5d6c7b8a90',
  userAgent: 'Mozilla/5.0 (X11; Linux x86_64) Firefox/146.0',
  current: true,
  createdAt: '2026-11-21T11:40:02.118Z',
  lastUsedAt: '2026-11-21T11:52:30.004Z',
  expiresAt: '2026-11-28T11:40:02.116Z',
}

const passkey = {
  id: '0193a1d4-5e02-7c19-a3d8-2b7f4c6e9d01',
  name: 'Laptop',
  synced: true,
  createdAt: '2026-11-21T11:44:30.902Z',
  lastUsedAt: '2026-11-21T12:05:11.377Z',
}
const CREDENTIAL_ID = 'pH3r0aW1nXyQk8mT5uVbZw'
const credential = {
  id: CREDENTIAL_ID,
  rawId: CREDENTIAL_ID,
  type: 'public-key',
  clientExtensionResults: {},
}
const CLIENT_DATA = 'eyJ0eXBlIjoid2ViYXV0aG4uZ2V0IiwiY2hhbGxlbmdlIjoi4oCmIn0'
const CHALLENGE = 'VZk3vRzA2yq0oM1bJ7kLwPZ8e5t9dXcQfGhUiSnVmYr'
const begun = {
  data: { url: 'https://id.example.com/auth?client_id=berth&response_type=code&state=login.x1' },
}
const returned = { query: 'code=Kq3vRzA2yq0o&state=login.x1&iss=https%3A%2F%2Fid.example.com' }
const identity = {
  id: '0193a1d6-0b1f-7e84-9c35-6f2a8d4e7b13',
  issuer: 'https://id.example.com',
  email: 'ada@example.com',
  createdAt: '2026-11-21T11:48:09.260Z',
  lastUsedAt: '2026-11-21T12:10:44.018Z',
}
const revoked = { response: 'Revoked' }
const signedIn = { data: { id: session.id, expiresAt: session.expiresAt } }

export const accountExamples: Record<string, Example> = {
  listAudit: AUDIT_EXAMPLE,
  listWorkspaces: { response: { data: { workspaces: [workspace], next_page_token: '' } } },
  getWorkspace: { response: { data: workspace } },
  renameWorkspace: { request: { name: 'catalogues' }, response: { data: workspace } },
  listMembers: { response: { data: { members: [member], next_page_token: '' } } },
  changeMember: { request: { role: 'viewer' }, response: { data: { ...member, role: 'viewer' } } },
  removeMember: { response: { data: null } },
  createInvitation: {
    request: { role: 'member', email: 'ada@example.com' },
    response: { data: { ...invitation, token: INVITATION_TOKEN } },
  },
  listInvitations: { response: { data: { invitations: [invitation], next_page_token: '' } } },
  revokeInvitation: { response: { data: null } },
  acceptInvitation: { request: { token: INVITATION_TOKEN, name: 'Ada' }, response: accepted },
  joinWorkspace: { request: { token: INVITATION_TOKEN }, response: accepted },
  login: {
    request: { token: 'login_Zk3vRzA2yq0oM1bJ7kLwPZ8e5t9dXcQfGhUiSnVmYrT' },
    response: signedIn,
  },
  waysToSignIn: { response: { data: { passkey: true, oidc: { name: 'Example' } } } },
  beginPasskeyLogin: {
    response: {
      data: {
        challenge: CHALLENGE,
        timeout: 300_000,
        rpId: 'berth.example.com',
        userVerification: 'required',
      },
    },
  },
  loginWithPasskey: {
    request: {
      credential: {
        ...credential,
        response: {
          clientDataJSON: CLIENT_DATA,
          authenticatorData: 'SZYN5YgOjGh0NBcPZHZgW4_krrmihjLHmVzzuoMdl2MdAAAAAg',
          signature: 'MEUCIQDx3vRzA2yq0oM1bJ7kLwPZ8e5t9dXcQfGhUiSnVmYrAiBk',
          userHandle: 'AZOhsEQQf26NJ8BbnmGj8g',
        },
      },
      workspaceId: WORKSPACE,
    },
    response: signedIn,
  },
  listPasskeys: { response: { data: { passkeys: [passkey] } } },
  beginPasskey: {
    response: {
      data: {
        challenge: CHALLENGE,
        rp: { name: 'Berth', id: 'berth.example.com' },
        user: { id: 'AZOhsEQQf26NJ8BbnmGj8g', name: 'owner', displayName: 'owner' },
        pubKeyCredParams: [{ type: 'public-key', alg: -7 }],
        authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
      },
    },
  },
  createPasskey: {
    request: {
      name: 'Laptop',
      credential: {
        ...credential,
        response: {
          clientDataJSON: CLIENT_DATA,
          attestationObject: 'o2NmbXRkbm9uZWdhdHRTdG10oGhhdXRoRGF0YVik',
        },
      },
    },
    response: { data: passkey },
  },
  renamePasskey: { request: { name: 'Laptop' }, response: { data: passkey } },
  deletePasskey: { response: { data: null } },
  beginOidcLogin: { request: { workspaceId: WORKSPACE }, response: begun },
  loginWithOidc: { request: returned, response: signedIn },
  listIdentities: { response: { data: { identities: [identity] } } },
  beginIdentity: { response: begun },
  linkIdentity: { request: returned, response: { data: identity } },
  unlinkIdentity: { response: { data: null } },
  logout: { response: { data: null } },
  whoAmI: {
    response: {
      data: {
        user: { id: OWNER, name: 'owner' },
        workspace: { id: WORKSPACE, name: 'catalogues' },
        role: 'owner',
        scopes: ['admin', 'instance:write'],
        isInstanceAdmin: true,
        plan: PLAN_EXAMPLE,
        session: { id: session.id, expiresAt: session.expiresAt },
        workspaces: [
          { id: WORKSPACE, name: 'catalogues', role: 'owner' },
          { id: '0193a1c0-51d2-7c3f-8a04-9d2e61b7f3a5', name: 'reading room', role: 'viewer' },
        ],
      },
    },
  },
  loginByInvitation: { request: { token: INVITATION_TOKEN, name: 'Ada' }, response: signedIn },
  joinWithSession: {
    request: { token: INVITATION_TOKEN },
    response: { data: { id: session.id, expiresAt: session.expiresAt } },
  },
  moveSession: {
    request: { workspaceId: '0193a1c0-51d2-7c3f-8a04-9d2e61b7f3a5' },
    response: { data: { id: session.id, expiresAt: session.expiresAt } },
  },
  listSessions: { response: { data: { sessions: [session] } } },
  revokeSession: { response: { data: null } },
  listWorkspaceKeys: {
    response: {
      data: {
        keys: [
          {
            id: '0193a1c5-02aa-7a31-93be-6d1f8e20c94b',
            name: 'website',
            publicKey: '5f0c2b7be1d94a30a7e6',
            user: { id: OWNER, name: 'owner' },
            scopes: ['org:files:read', 'org:groups:read'],
            maxUses: null,
            uses: 0,
            createdAt: '2026-11-21T10:59:01.133Z',
            expiresAt: null,
            revokedAt: null,
            lastUsedAt: '2026-11-21T11:42:07.518Z',
          },
        ],
        next_page_token: '',
      },
    },
  },
  revokeWorkspaceKey: { response: { data: null } },
  createKey: {
    request: { keyName: 'website', permissions: { resources: ['org:files:read', 'org:groups:read'] } },
    response: {
      JWT: 'eyJhbGciOiJIUzI1NiJ9.eyJqdGkiOiIwMTkzYTFjNSJ9.c2lnbmF0dXJl',
      pinata_api_key: '5f0c2b7be1d94a30a7e6',
      pinata_api_secret: 'c1f0e2d3a4b5968778695a4b3c2d1e0f',
    },
  },
  listKeys: {
    response: {
      keys: [
        {
          id: '0193a1c5-02aa-7a31-93be-6d1f8e20c94b',
          name: 'website',
          key: '5f0c2b7be1d94a30a7e6',
          secret: '',
          max_uses: null,
          uses: 0,
          user_id: '0193a1b0-4410-7f6e-8d27-c05b9e61a3f2',
          scopes: {
            admin: false,
            resources: ['org:files:read', 'org:groups:read'],
            endpoints: {
              data: { pinList: true, userPinnedDataTotal: true },
              pinning: {
                pinJobs: true,
                hashMetadata: false,
                hashPinPolicy: false,
                pinByHash: false,
                pinFileToIPFS: false,
                pinJSONToIPFS: false,
                unpin: false,
                userPinPolicy: false,
              },
            },
          },
          revoked: false,
          createdAt: '2026-11-21T10:59:00.314Z',
          updatedAt: '2026-11-21T10:59:00.314Z',
        },
      ],
      count: 1,
    },
  },
  sendFeedback: {
    request: { message: 'The log of an agent could be longer.' },
    response: { success: true },
  },
  revokeKey: revoked,
  deleteKey: revoked,
}
