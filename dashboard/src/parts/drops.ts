/** Handles files dropped outside an upload area, which the browser would open instead of the dashboard. */
import { useEffect } from 'react'

type Take = (transfer: DataTransfer) => void
let takeStray: Take | undefined

/** True if files are dragged or dropped, rather than text. */
export const hasFiles = (event: DragEvent): event is DragEvent & { dataTransfer: DataTransfer } =>
  event.dataTransfer?.types.includes('Files') ?? false

/** Keeps the browser from opening dropped files. Runs after the listeners of pages, which are below `window`. */
export function guardDrops(): void {
  addEventListener('dragover', (event) => {
    if (event.defaultPrevented || !hasFiles(event)) return
    event.preventDefault()
    if (!takeStray) event.dataTransfer.dropEffect = 'none'
  })
  addEventListener('drop', (event) => {
    if (event.defaultPrevented || !hasFiles(event)) return
    event.preventDefault()
    takeStray?.(event.dataTransfer)
  })
}

/** Accepts files dropped on a page without an upload area. @param take undefined if the user may not upload */
export function useStrayDrops(take: Take | undefined): void {
  useEffect(() => {
    takeStray = take
    return () => {
      takeStray = undefined
    }
  }, [take])
}
