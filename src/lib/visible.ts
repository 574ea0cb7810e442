/**
 * Invisible characters: whitespace, controls, formats such as the zero-width space, fillers and the blank Braille
 * pattern.
 */
const INVISIBLE = /[\s\p{Z}\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}\u2800]/u
const ONLY_INVISIBLE = new RegExp(`^${INVISIBLE.source}*$`, 'u')

/** True for a text with at least one visible character. */
export const isVisible = (text: string): boolean => !ONLY_INVISIBLE.test(text)
