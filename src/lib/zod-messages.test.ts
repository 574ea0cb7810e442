import assert from 'node:assert/strict'
import { it } from 'node:test'
import { z } from 'zod'
import './zod-messages.ts'

it('an invalid value gets a message with what it must be', () => {
  const schema = z.strictObject({
    name: z.string().min(1).max(3),
    count: z.coerce.number().int().min(1).max(5).optional(),
    share: z.number().gt(0).optional(),
    kind: z.enum(['a', 'b', 'c']).optional(),
    list: z.array(z.string()).max(2).optional(),
    isOn: z.boolean('must be on or off').optional(),
    more: z.object({}).optional(),
  })
  const saidOf = (value: unknown) => schema.safeParse(value).error?.issues[0]?.message
  const said: [unknown, string][] = [
    [{}, 'is required'],
    [null, 'must be an object'],
    [{ name: 1 }, 'must be a text'],
    [{ name: '' }, 'must not be empty'],
    [{ name: 'long' }, 'must have at most 3 characters'],
    [{ name: 'a', count: 'abc' }, 'must be a number'],
    [{ name: 'a', count: 1.5 }, 'must be a whole number'],
    [{ name: 'a', count: 0 }, 'must be at least 1'],
    [{ name: 'a', count: 6 }, 'must be at most 5'],
    [{ name: 'a', share: 0 }, 'must be more than 0'],
    [{ name: 'a', kind: 'd' }, 'must be a, b, or c'],
    [{ name: 'a', list: 'x' }, 'must be a list'],
    [{ name: 'a', list: ['x', 'y', 'z'] }, 'must have at most 2 entries'],
    [{ name: 'a', isOn: 1 }, 'must be on or off'],
    [{ name: 'a', more: [] }, 'must be an object'],
    [{ name: 'a', other: 1 }, 'has no other'],
  ]
  for (const [value, words] of said) assert.equal(saidOf(value), words, JSON.stringify(value))
})
