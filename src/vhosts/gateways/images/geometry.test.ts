import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { planImage } from './geometry.ts'
import type { ImageOptions } from './options.ts'

const LANDSCAPE = { width: 400, height: 200 }
const MIDDLE = { x: 0.5, y: 0.5 }
const box = (
  fit: ImageOptions['fit'],
  width: number | undefined,
  height: number | undefined,
  gravity: ImageOptions['gravity'] = MIDDLE,
) => planImage(LANDSCAPE, { fit, width, height, gravity })
const size = (width: number, height: number) => ({ width, height })

describe('the size of a converted image', () => {
  it('scale-down shrinks into the box, and never enlarges', () => {
    assert.deepEqual(box('scale-down', 100, 100).frame, size(100, 50))
    assert.deepEqual(box('scale-down', undefined, 50).frame, size(100, 50))
    assert.deepEqual(box('scale-down', 1000, 1000).frame, LANDSCAPE)
    assert.deepEqual(box('scale-down', undefined, undefined).frame, LANDSCAPE)
  })

  it('contain shrinks and enlarges into the box', () => {
    assert.deepEqual(box('contain', 100, 100).frame, size(100, 50))
    assert.deepEqual(box('contain', 800, 800).frame, size(800, 400))
    assert.deepEqual(box('contain', 800, undefined).frame, size(800, 400))
  })

  it('cover fills the box, and cuts off the rest', () => {
    assert.deepEqual(box('cover', 100, 100), {
      frame: size(100, 100),
      scaled: size(200, 100),
      crop: { left: 50, top: 0 },
    })
    assert.deepEqual(box('cover', 800, 800).scaled, size(1600, 800))
    assert.deepEqual(box('cover', 800, undefined).frame, size(800, 400))
  })

  it('the gravity determines which side of a cropped image stays', () => {
    assert.deepEqual(box('cover', 100, 100, { x: 0, y: 0.5 }).crop, { left: 0, top: 0 })
    assert.deepEqual(box('cover', 100, 100, { x: 1, y: 0.5 }).crop, { left: 100, top: 0 })
    assert.deepEqual(box('cover', 400, 100, { x: 0.5, y: 0.25 }).crop, { left: 0, top: 25 })
  })

  it('crop works like cover without ever enlarging', () => {
    assert.deepEqual(box('crop', 100, 100), box('cover', 100, 100))
    assert.deepEqual(box('crop', 1000, 1000).frame, LANDSCAPE)
    assert.deepEqual(box('crop', 1000, 100).frame, size(400, 100))
    assert.deepEqual(box('crop', 1000, undefined).frame, LANDSCAPE)
  })

  it('pad puts the whole image into exactly the box', () => {
    assert.deepEqual(box('pad', 800, 800), { frame: size(800, 800), scaled: size(800, 400), crop: null })
    assert.deepEqual(box('pad', 100, undefined).frame, size(100, 50))
  })

  it('a side has at least one pixel', () => {
    const frame = planImage(size(1000, 1), {
      fit: 'contain',
      width: 10,
      height: undefined,
      gravity: MIDDLE,
    }).frame
    assert.deepEqual(frame, size(10, 1))
  })
})
