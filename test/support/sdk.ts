/**
 * The official `pinata` SDK, unchanged, against a Berth on this machine.
 *
 * The SDK always speaks `https://` to gateways, and Node resolves no `*.localhost`. In a real installation, DNS leads
 * to a reverse proxy that terminates TLS in front of Berth. Here an undici connector stands in for both: it forwards a
 * connection to a gateway's name to Berth, without TLS.
 */
import type { Socket } from 'node:net'
import { PinataSDK } from 'pinata'
import { Agent, buildConnector, setGlobalDispatcher } from 'undici'

const IDLE_MS = 1000

/**
 * From now on, `fetch` of this process reaches a gateway of a Berth by its name.
 *
 * @param berth.url of its API.
 * @param berth.gateway the host name.
 * @returns how many bytes `fetch` has sent so far, to any server.
 */
export function reachGateway(berth: { url: string; gateway: string }): { sent(): number } {
  const { hostname, port } = new URL(berth.url)
  const connect = buildConnector({})
  const sockets: Socket[] = []
  const connector: buildConnector.connector = (target, callback) => {
    const isGateway = target.hostname === berth.gateway
    connect(isGateway ? { ...target, protocol: 'http:', hostname, port } : target, (...result) => {
      if (result[1]) sockets.push(result[1])
      callback(...result)
    })
  }
  // The `fetch` of Node 24 accepts the dispatcher of the npm package: both are undici 7. It drops connections long
  // before Berth does: a POST on a connection that Berth has just closed fails, and the SDK repeats none.
  setGlobalDispatcher(
    new Agent({ connect: connector, keepAliveTimeout: IDLE_MS, keepAliveMaxTimeout: IDLE_MS }),
  )
  return { sent: () => sockets.reduce((sum, { bytesWritten }) => sum + bytesWritten, 0) }
}

/** The SDK with all its addresses on Berth. @param options.gateway the host name of a gateway. */
export function createSdk(options: { url: string; key?: string | undefined; gateway: string }): PinataSDK {
  const { url, key, gateway } = options
  return new PinataSDK({
    ...(key !== undefined && { pinataJwt: key }),
    pinataGateway: gateway,
    endpointUrl: `${url}/v3`,
    uploadUrl: `${url}/v3`,
    legacyUploadUrl: `${url}/pinning/pinFileToIPFS`,
  })
}
