/** Characters that show nothing: blanks, controls, formats such as the zero-width space, fillers and a blank of Braille. */
const INVISIBLE = /[\s\p{Z}\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}\u2800]/u
const ONLY_INVISIBLE = new RegExp(`^${INVISIBLE.source}*$`, 'u')

/** True for a text that shows at least one character. */
export const isVisible = (text: string): boolean => !ONLY_INVISIBLE.test(text)
