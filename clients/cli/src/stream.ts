/** `parseAs: 'stream'` has the type of the body in the document. */
export const streamOf = (body: unknown): ReadableStream<Uint8Array> => body as ReadableStream<Uint8Array>
