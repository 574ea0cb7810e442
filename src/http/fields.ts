/** Fields that bodies and responses have, with their examples for the OpenAPI document. */
import { z } from 'zod'

/** A shape with an example of its values. */
export const withExample = <S extends z.ZodType>(shape: S, example: z.input<S> | z.output<S>): S =>
  shape.meta({ examples: [example] })

/** A text, a number or a boolean with an example. */
export function like(example: string): z.ZodString
export function like(example: number): z.ZodNumber
export function like(example: boolean): z.ZodBoolean
export function like(example: string | number | boolean): z.ZodType {
  const shapes = { string: z.string(), number: z.number(), boolean: z.boolean() }
  return shapes[typeof example as keyof typeof shapes].meta({ examples: [example] })
}

/** The id of a row. */
export const uuid = like('0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7')
export const userId = like('0193a1bf-02c8-7d15-93fe-6b1c2d4e5f60')
export const workspaceId = like('0193a1af-90d1-7c22-8e4b-7f30a1c5d2e9')
/** An API key, or a token of an agent in the same format. */
export const apiKey = like('eyJhbGciOiJIUzI1NiJ9.eyJqdGkiOiIwMTkzYTFjNSJ9.c2lnbmF0dXJl')
export const agentId = like('x7f3k2ab')

/** A time in RFC 3339, UTC. */
export const timestamp = like('2026-11-21T10:58:03.485Z')

export const EXAMPLE_CID = 'bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi'
/** The CID of stored content. */
export const contentCid = like(EXAMPLE_CID)
/** Metadata of a file. */
export const keyvaluePairs = withExample(z.record(z.string(), z.string()), { season: 'spring' })
export const commitSha = like('4f2d9c1b7a3e5d608c9b1e2f3a4d5c6b7a8f9e01')
export const engineVersion = like('2026.9.6')
