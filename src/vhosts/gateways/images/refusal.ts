/**
 * Why an image was not converted, as a message for clients. Messages of sharp and libvips contain no path, because they
 * are given bytes.
 */
export function refusalOf({ message }: Error, maxPixels: number): string {
  if (/pixel limit/.test(message)) {
    return `it has more than ${maxPixels} pixels, all frames together (BERTH_IMAGES)`
  }
  if (/unsupported image format/.test(message)) return 'it is not a JPEG, PNG, GIF or WebP'
  if (/memory/i.test(message)) return 'converting it takes too much memory'
  // Some messages of libvips begin with an empty line.
  const reason = message.split('\n').find((line) => line.trim() !== '')
  return reason?.trim().slice(0, 200) ?? 'it is damaged, or of a kind that cannot be read'
}
