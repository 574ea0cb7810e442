/** A client of an agent's gateway with its own key: a device (OpenClaw's protocol 4). */
import { createHash, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { WebSocket } from 'ws'

const CLIENT = { id: 'cli', version: '1.0.0', platform: 'linux', mode: 'cli', displayName: 'Test phone' }
const ANSWER_MS = 60_000
const PAUSE_MS = 250
/** The code with which Berth closes the WebSocket of a gateway that is not ready. */
const TRY_AGAIN_LATER = 1013

interface Way {
  url: string
  host: string
  token: string
}

interface Answer {
  ok: boolean
  payload?: any
  error?: { code: string; details?: any; retryable?: boolean }
}

export class Device {
  readonly #key: KeyObject
  readonly #publicKey: Buffer

  constructor() {
    const { privateKey, publicKey } = generateKeyPairSync('ed25519')
    this.#key = privateKey
    // The 32 bytes of the key are at the end of its encoding.
    this.#publicKey = publicKey.export({ type: 'spki', format: 'der' }).subarray(-32)
  }

  get id(): string {
    return createHash('sha256').update(this.#publicKey).digest('hex')
  }

  /** Connects to an agent's own host and requests `scopes`; resolves to the gateway's response. */
  async connect(way: Way, scopes = ['operator.read', 'operator.write']): Promise<Answer> {
    for (const deadline = performance.now() + ANSWER_MS; ; await delay(PAUSE_MS)) {
      const answer = await this.#connect(way, scopes, deadline)
      if (answer) return answer
    }
  }

  /** Resolves to undefined if the gateway is not ready yet. */
  async #connect({ url, host, token }: Way, scopes: string[], deadline: number): Promise<Answer | undefined> {
    const headers = { host, authorization: `Bearer ${token}` }
    const socket = new WebSocket(url.replace(/^http/, 'ws'), { headers, handshakeTimeout: ANSWER_MS })
    try {
      return await new Promise((resolve, reject) => {
        const late = setTimeout(() => reject(new Error('no response in time')), ANSWER_MS)
        socket.on('error', reject)
        socket.on('close', (code, reason) => {
          clearTimeout(late)
          if (code === TRY_AGAIN_LATER && performance.now() < deadline) resolve(undefined)
          else reject(new Error(`closed: ${code} ${reason}`))
        })
        socket.on('message', (data) => {
          const frame = JSON.parse(String(data))
          if (frame.event === 'connect.challenge') socket.send(this.#hello(frame.payload, token, scopes))
          else if (frame.type === 'res')
            resolve(frame.error?.retryable && performance.now() < deadline ? undefined : frame)
        })
      })
    } finally {
      socket.terminate()
    }
  }

  #hello({ nonce, ts }: { nonce: string; ts: number }, token: string, scopes: string[]): string {
    const { id, mode, platform } = CLIENT
    const said = ['v3', this.id, id, mode, 'operator', scopes.join(), ts, token, nonce, platform, ''].join(
      '|',
    )
    const device = {
      id: this.id,
      publicKey: this.#publicKey.toString('base64url'),
      signature: sign(null, Buffer.from(said), this.#key).toString('base64url'),
      signedAt: ts,
      nonce,
    }
    const params = {
      minProtocol: 4,
      maxProtocol: 4,
      client: CLIENT,
      role: 'operator',
      scopes,
      caps: [],
      auth: { token },
      device,
    }
    return JSON.stringify({ type: 'req', id: '1', method: 'connect', params })
  }
}
