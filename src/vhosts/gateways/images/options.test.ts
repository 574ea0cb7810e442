import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ApiError } from '../../../errors.ts'
import { askedImage } from './options.ts'

const read = (query: string, accept?: string) =>
  askedImage(new URL(`https://gateway/ipfs/cid?${query}`), accept)

describe('image options', () => {
  it('a URL without image options requests no image', () => {
    assert.equal(read('filename=a.png&download=true'), undefined)
  })

  it('options that a URL omits have defaults', () => {
    assert.deepEqual(read('img-width=100'), {
      options: {
        width: 100,
        height: undefined,
        fit: 'scale-down',
        gravity: { x: 0.5, y: 0.5 },
        quality: undefined,
        format: 'own',
        animation: true,
        sharpen: 0,
        metadata: 'copyright',
      },
      orOriginal: false,
    })
  })

  it('all options that the SDK sends are parsed', () => {
    const query =
      'img-width=100&img-height=50&img-dpr=2&img-fit=scaleDown&img-gravity=0.25x1&img-quality=80&img-format=webp&img-anim=false&img-sharpen=1.5&img-onerror=redirect&img-metadata=keep'
    assert.deepEqual(read(query), {
      options: {
        width: 200,
        height: 100,
        fit: 'scale-down',
        gravity: { x: 0.25, y: 1 },
        quality: 80,
        format: 'webp',
        animation: false,
        sharpen: 1.5,
        metadata: 'keep',
      },
      orOriginal: true,
    })
  })

  it('the format auto is WebP for clients that accept it, and otherwise the source’s', () => {
    assert.equal(read('img-format=auto', 'image/avif,image/webp,*/*')?.options.format, 'webp')
    assert.equal(read('img-format=auto', '*/*')?.options.format, 'own')
  })

  it('a value out of range is rejected with the name of its option', () => {
    const refused = {
      'img-width': ['0', '8193', '-1', '1.5', 'auto', ''],
      'img-height': ['0', '8193', 'x'],
      'img-dpr': ['0', '11', '1e1', 'x'],
      'img-fit': ['fill', 'Cover'],
      'img-gravity': ['side', '2x0', '0.5', '0.5x-1'],
      'img-quality': ['0', '101'],
      'img-format': ['avif', 'svg', 'gif'],
      'img-anim': ['1', ''],
      'img-sharpen': ['11', '-1'],
      'img-onerror': ['', 'ignore'],
      'img-metadata': ['all'],
    }
    for (const [name, values] of Object.entries(refused))
      for (const value of values)
        assert.throws(
          () => read(new URLSearchParams({ [name]: value }).toString()),
          (error) =>
            error instanceof ApiError &&
            error.status === 400 &&
            error.message.startsWith(`${name}: must be `),
          `${name}=${value}`,
        )
  })

  it('an unknown option is rejected with a list of the known ones', () => {
    assert.throws(
      () => read('img-width=10&img-blur=5'),
      /^ApiError: img-…: the image options are img-width, /,
    )
  })

  it('a side that is too long only in device pixels is rejected', () => {
    assert.throws(() => read('img-height=5000&img-dpr=2'), /img-height: must be at most 8192 with img-dpr/)
  })
})
