/**
 * Examples of each route's body and response, by the route's id. A test validates them against the routes' schemas, and
 * finds routes without an example.
 */
import { accountExamples } from './account-examples.ts'
import { adminExamples } from './admin-examples.ts'
import { agentExamples } from './agent-examples.ts'
import { domainExamples } from './domain-examples.ts'
import { engineExamples } from './engine-examples.ts'
import { eventExamples } from './event-examples.ts'
import type { Example } from './example.ts'
import { olderExamples } from './older-examples.ts'
import { skillExamples } from './skill-examples.ts'
import { snapshotExamples } from './snapshot-examples.ts'
import { templateExamples } from './template-examples.ts'

const FILE = '0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7'
const USER = '0193a1bf-02c8-7d15-93fe-6b1c2d4e5f60'
const GROUP = '0193a1c0-1f5c-7e02-b1d6-9a4c77e03b15'
const GATEWAY = '0193a1c2-5e07-7d19-a4b3-81f06c2d97e5'
const OPERATION = '0193a1c4-7d2e-7b1a-9c55-3f0e6a2b8d41'
const CID = 'bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi'
const HOST_NODE = '/ip4/203.0.113.7/tcp/4001/p2p/12D3KooWEyoppNCUx8Yx66oV9fJnriXwCcXwDDUA2kj6vnc6iDEp'
const NEWER_CID = 'bafybeihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku'
const CREATED = '2026-11-21T10:58:03.485934Z'

const pin = {
  id: FILE,
  name: 'Spring catalogue',
  cid: CID,
  keyvalues: { season: 'spring' },
  group_id: null,
  status: 'prechecking',
  date_queued: CREATED,
  hose_nodes: [],
  host_nodes: [],
}

const psaPin = {
  requestid: FILE,
  status: 'pinning',
  created: '2026-11-21T10:58:03.435Z',
  pin: { cid: CID, name: 'Spring catalogue', origins: [HOST_NODE], meta: { season: 'spring' } },
  delegates: ['/ip4/198.51.100.4/tcp/4001/p2p/12D3KooWN5wpNZayhHtveWiTBL35x3pe4uyEotTfDjWhNM2Z4GRV'],
  info: { status_details: 'retrieving: 112 blocks, 29360128 bytes' },
}

const file = {
  id: FILE,
  name: 'Spring catalogue',
  cid: CID,
  size: 52_428_800,
  number_of_files: 2048,
  mime_type: 'directory',
  keyvalues: { season: 'spring' },
  group_id: null,
  created_at: CREATED,
  expires_at: null,
}

const uploaded = {
  ...file,
  name: 'logo.png',
  cid: 'bafkreifzjut3te7nhyekklss27nh3k72ysco7y32koao5eei66wof36n5e',
  size: 17_408,
  number_of_files: 1,
  mime_type: 'image/png',
}

const group = { id: GROUP, name: 'Catalogues', is_public: false, created_at: '2026-11-21T10:40:12.101735Z' }

const swap = { mapped_cid: NEWER_CID, created_at: '2026-11-21T11:20:44.061733Z' }
const olderSwap = { mappedCid: swap.mapped_cid, createdAt: swap.created_at }

const gatewayRow = {
  id: GATEWAY,
  created_at: '2026-11-21T10:41:07.220Z',
  domain: 'catalogues',
  host: 'catalogues.gateway.localhost',
  restrict: false,
  custom_domains: [],
}
const gatewayDomain = {
  domain: 'files.example.com',
  domain_validation_status: 'pending',
  custom_domain_id: '0193a1c2-7b44-7e02-9d1c-5a3f8e6b2c91',
  ssl_validation_status: 'initializing',
  txt_name: '_service-verify.files.example.com',
  txt_value: 'berth-verify=3vRzA2yq0oM1bJ7kLwPZ8e5t9dXcQfGhUiSnVmYrTaE',
  cname_target: 'catalogues.gateway.localhost',
}
const activeDomain = {
  ...gatewayDomain,
  domain_validation_status: 'active',
  ssl_validation_status: 'active',
  txt_name: null,
  txt_value: null,
}
const signed = {
  signature:
    '0x1ba6c2a8412dc9b0be37b013ea5bddd97251dab4d435cc9c4c7bcf331d4017ca2de07485ad6a15ce60d3700cee802787bc7ede0c112c7843f702bb1e71b750911b',
  address: '0xbC18447255e86f7f6c01C25e82636dDc587Ef9dc',
}
const serving = { inner_cids: true, cid_hosts: false }
const gateway = {
  ...gatewayRow,
  ...serving,
  settings: { restriction_policies: { accessTokens: [], allowedHosts: [], allowedIPAddresses: [] } },
}
const plugin = {
  id: 2,
  name: 'Hot Swaps',
  description: 'Serves newer content under the address of a CID that was given away before.',
  tags: ['files'],
}
const installed = { gateway_id: GATEWAY, plugin_id: 2 }

const operation = {
  id: OPERATION,
  kind: 'pin.add',
  target: FILE,
  target_name: 'catalogue.pdf',
  state: 'running',
  step: 'retrieving',
  progress: { blocks: 112, bytes: 29_360_128, total_bytes: 52_431_991 },
  attempts: 1,
  error: null,
  error_code: null,
  created_at: CREATED,
  started_at: '2026-11-21T10:58:03.502417Z',
  next_attempt_at: null,
  finished_at: null,
}

const done = {
  ...operation,
  state: 'succeeded',
  progress: { blocks: 205, bytes: 52_431_991, total_bytes: 52_431_991 },
  finished_at: '2026-11-21T10:58:09.118250Z',
}

const parts = {
  database: { status: 'ok' },
  queue: { status: 'ok', detail: 'in PostgreSQL' },
  schema: { status: 'ok' },
  disk: { status: 'ok' },
  host: { status: 'ok' },
  dispatcher: { status: 'ok' },
  workers: { status: 'ok', detail: '1 running' },
  ipfs: { status: 'ok', detail: 'embedded' },
  ipfs_private: { status: 'ok', detail: 'embedded' },
  docker: { status: 'ok' },
}

const deleted = { response: { data: null } }

export const examples: Record<string, Example> = {
  ...engineExamples,
  pinByCid: {
    request: {
      cid: CID,
      name: 'Spring catalogue',
      keyvalues: { season: 'spring' },
    },
    response: { data: pin },
  },
  listPinByCid: { response: { data: { jobs: [{ ...pin, status: 'retrieving' }], next_page_token: '' } } },
  cancelPinByCid: deleted,
  retryPinByCid: { response: { data: pin } },

  psaListPins: { response: { count: 1, results: [psaPin] } },
  psaAddPin: { request: psaPin.pin, response: psaPin },
  psaGetPin: { response: psaPin },
  psaReplacePin: { request: psaPin.pin, response: psaPin },

  uploadFile: {
    request: { file: '<the bytes of logo.png>', network: 'public', keyvalues: '{"season":"spring"}' },
    response: {
      data: { ...uploaded, vectorized: false, network: 'public', is_duplicate: false, user_id: USER },
    },
  },
  uploadBySignedUrl: {
    request: { file: '<the bytes of logo.png>' },
    response: {
      data: { ...uploaded, vectorized: false, network: 'public', is_duplicate: false, user_id: USER },
    },
  },
  signUpload: {
    request: { expires: 60, network: 'public', max_file_size: 5_000_000, allow_mime_types: ['image/*'] },
    response: {
      data: `https://berth.example/v3/files/${FILE}?X-Algorithm=PINATA2&X-Date=1795258683&X-Expires=60&X-Method=%5B%22HEAD%22%2C%22PATCH%22%2C%22POST%22%5D&X-User-ID=${USER}&X-Signature=…`,
    },
  },
  signDownload: {
    request: { url: `https://catalogues.gateway.localhost/files/${CID}`, expires: 60, method: 'GET' },
    response: {
      data: `https://catalogues.gateway.localhost/files/${CID}?X-Algorithm=PINATA1&X-Date=1795258683&X-Expires=60&X-Method=GET&X-Signature=…`,
    },
  },
  linkToFile: {
    response: {
      data: `https://catalogues.gateway.localhost/files/${CID}?X-Algorithm=PINATA1&X-Date=1795258683&X-Expires=900&X-Method=GET&X-Signature=…`,
    },
  },
  appendToUpload: { request: '<bytes>' },
  ...olderExamples,
  pinFileToIPFS: {
    request: {
      file: ['<the bytes of catalogue/1.png>', '<the bytes of catalogue/2.png>'],
      pinataMetadata: '{"name":"Spring catalogue","keyvalues":{"season":"spring"}}',
      pinataOptions: '{"cidVersion":1}',
    },
    response: {
      ID: FILE,
      Name: 'Spring catalogue',
      IpfsHash: CID,
      PinSize: 91_402,
      Timestamp: CREATED,
      NumberOfFiles: 2,
      MimeType: 'directory',
      GroupId: null,
      Keyvalues: { season: 'spring' },
      isDuplicate: false,
    },
  },

  listFiles: { response: { data: { files: [file], next_page_token: '' } } },
  getFile: { response: { data: file } },
  getFileDetails: { response: { data: { signature: { cid: CID, ...signed }, swaps: [swap] } } },
  listEntries: {
    response: {
      data: {
        entries: [
          { name: 'cover.png', cid: NEWER_CID, type: 'file', size: 91_402 },
          { name: 'pages', cid: CID, type: 'directory', size: 52_337_398 },
        ],
        next_page_token: '',
      },
    },
  },
  updateFile: {
    request: { keyvalues: { season: 'summer', draft: null } },
    response: { data: { ...file, keyvalues: { season: 'summer' } } },
  },
  deleteFile: deleted,
  getIpfsNode: {
    response: {
      data: {
        driver: 'kubo',
        agent: 'kubo/0.43.0',
        peer_id: '12D3KooWEyoppNCUx8Yx66oV9fJnriXwCcXwDDUA2kj6vnc6iDEp',
        addresses: [HOST_NODE],
        repo_bytes: 734_003_200,
      },
    },
  },

  createGroup: { request: { name: 'Catalogues' }, response: { data: group } },
  listGroups: { response: { data: { groups: [group], next_page_token: '' } } },
  getGroup: { response: { data: group } },
  updateGroup: { request: { is_public: true }, response: { data: { ...group, is_public: true } } },
  deleteGroup: deleted,
  addFileToGroup: deleted,
  removeFileFromGroup: deleted,

  swapCid: { request: { swap_cid: NEWER_CID }, response: { data: swap } },
  swapHistory: { response: { data: [swap, { mapped_cid: null, created_at: CREATED }] } },
  deleteSwap: deleted,
  swapCidOlder: { request: { swapCid: NEWER_CID }, response: { data: olderSwap } },
  swapHistoryOlder: { response: { data: [olderSwap] } },
  deleteSwapOlder: deleted,

  topAnalytics: { response: { data: [{ value: CID, requests: 1341, bandwidth: 287_310_699 }] } },
  analyticsTimeSeries: {
    response: {
      data: {
        total_requests: 209,
        total_bandwidth: 131_151_812,
        time_periods: [
          { period_start_time: '2026-11-22', requests: 100, bandwidth: 75_721_161 },
          { period_start_time: '2026-11-21', requests: 109, bandwidth: 55_430_651 },
        ],
      },
    },
  },
  addSignature: { request: signed, response: { data: { cid: CID, ...signed } } },
  getSignature: { response: { data: { cid: CID, ...signed } } },
  deleteSignature: deleted,
  addGatewayDomain: { request: { domain: 'files.example.com' }, response: { data: gatewayDomain } },
  getGatewayDomain: { response: { data: gatewayDomain } },
  verifyGatewayDomain: { response: { data: activeDomain } },
  deleteGatewayDomain: deleted,
  createGateway: { request: { domain: 'catalogues' }, response: { data: gateway } },
  listGateways: { response: { data: { count: 1, rows: [gatewayRow] } } },
  gatewayExists: { response: { data: { exists: true } } },
  getGateway: { response: { data: gateway } },
  deleteGateway: deleted,
  changeGatewayServing: { request: { inner_cids: true }, response: { data: serving } },
  listPlugins: { response: { data: [installed] } },
  listOfferedPlugins: { response: { data: [plugin] } },
  getOfferedPlugin: { response: { data: plugin } },
  listGatewayPlugins: { response: { data: [installed] } },
  installPlugin: { request: { plugin_id: 2 }, response: { data: installed } },
  removePlugin: deleted,
  createGatewayToken: {
    response: {
      data: {
        id: '0193a1c6-3b9f-7e44-9d08-2a7c51f4e6b0',
        value: 'q3V0bGU4c2hpcHMgZG9jayBhdCB0aGUgYmVydGggYXQgZGF3biBldmVyeSBkYXk',
        createdAt: '2026-11-21T11:02:31.907Z',
      },
    },
  },
  deleteGatewayToken: deleted,

  ...accountExamples,
  ...adminExamples,
  ...agentExamples,
  ...domainExamples,
  ...snapshotExamples,
  ...eventExamples,
  ...skillExamples,
  ...templateExamples,
  testAuthentication: {
    response: { message: 'Congratulations! You are communicating with the Pinata API!' },
  },
  getPinnedTotal: {
    response: {
      pin_count: 128,
      pin_size_total: 734_003_200,
      pin_size_with_replications_total: 734_003_200,
    },
  },
  getUsage: {
    response: {
      data: {
        plan: 'pro',
        files: 128,
        bytes: 734_003_200,
        limit_bytes: 1_099_511_627_776,
        max_file_bytes: 26_843_545_600,
      },
    },
  },

  listOperations: { response: { data: { operations: [operation], next_page_token: '' } } },
  getOperation: { response: { data: done } },
  streamOperation: {
    response: [operation, done]
      .map((data, i) => `event: operation\nid: ${i + 7}\ndata: ${JSON.stringify(data)}\n\n`)
      .join(''),
  },
  cancelOperation: {
    response: { data: { ...operation, state: 'canceled', finished_at: '2026-11-21T10:58:04.270655Z' } },
  },

  live: { response: { status: 'ok' } },
  ready: {
    response: { status: 'ok', parts },
    failures: {
      503: {
        status: 'down',
        parts: { ...parts, database: { status: 'down', detail: 'does not answer' } },
      },
    },
  },
  openapi: { response: { openapi: '3.1.0', info: { title: 'Berth', version: '0.1.0' }, paths: {} } },
}
