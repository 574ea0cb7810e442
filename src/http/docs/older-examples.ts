/** Examples for the API before v3. */
import type { Example } from './example.ts'

const FILE = '0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7'
const USER = '0193a1bf-02c8-7d15-93fe-6b1c2d4e5f60'
const CID = 'bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku'
const PINNED = '2026-11-21T10:58:03.485934Z'
const metadata = { name: 'token 1', keyvalues: { season: 'spring' } }

export const olderExamples: Record<string, Example> = {
  pinJSONToIPFS: {
    request: {
      pinataContent: { name: 'Token 1', image: `ipfs://${CID}` },
      pinataMetadata: metadata,
      pinataOptions: { cidVersion: 1 },
    },
    response: {
      ID: FILE,
      Name: 'token 1',
      IpfsHash: CID,
      PinSize: 104,
      Timestamp: PINNED,
      NumberOfFiles: 1,
      MimeType: 'application/json',
      GroupId: null,
      Keyvalues: { season: 'spring' },
      isDuplicate: false,
    },
  },
  pinByHash: {
    request: { hashToPin: CID, pinataMetadata: metadata },
    response: { id: FILE, ipfsHash: CID, status: 'prechecking', name: 'token 1' },
  },
  pinList: {
    response: {
      count: 1,
      rows: [
        {
          id: FILE,
          ipfs_pin_hash: CID,
          size: 104,
          user_id: USER,
          date_pinned: PINNED,
          date_unpinned: null,
          metadata,
          regions: [],
          mime_type: 'application/json',
          number_of_files: 1,
        },
      ],
    },
  },
  unpin: { response: 'OK' },
}
