/** Passkeys: the exchange between browser and API that creates one, and the exchange that signs in with one. */
import { texts } from '../texts.ts'
import { api, unwrap } from './client.ts'

type Json<T extends keyof typeof PublicKeyCredential> = Parameters<
  Extract<(typeof PublicKeyCredential)[T], (options: never) => unknown>
>[0]

/** Signs in with a passkey that the person chooses. @throws RequestError, or Error if the browser returned none */
export async function signInByPasskey(): Promise<void> {
  const { data } = await unwrap(api.POST('/v0/login/passkey/options'))
  const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(
    data as Json<'parseRequestOptionsFromJSON'>,
  )
  const credential = await chosen(navigator.credentials.get({ publicKey }))
  await unwrap(api.POST('/v0/login/passkey', { body: { credential } }))
}

/** Creates a passkey, and registers it with the API. @throws RequestError, or Error if the browser created none */
export async function addPasskey(name: string): Promise<void> {
  const { data } = await unwrap(api.POST('/v0/passkeys/options'))
  const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(
    data as unknown as Json<'parseCreationOptionsFromJSON'>,
  )
  const credential = await chosen(navigator.credentials.create({ publicKey }))
  await unwrap(api.POST('/v0/passkeys', { body: { name, credential } }))
}

/** The credential as JSON for the API, which validates it. */
async function chosen(asked: Promise<Credential | null>) {
  const credential = await asked.catch((error: DOMException) => {
    throw new Error(error.name === 'InvalidStateError' ? texts.login.passkeyKnown : texts.login.passkeyNone)
  })
  if (!(credential instanceof PublicKeyCredential)) throw new Error(texts.login.passkeyNone)
  return credential.toJSON()
}
