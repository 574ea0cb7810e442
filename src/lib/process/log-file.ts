/** The log of a server that Berth runs: reads its end, and limits its size. */
import { existsSync } from 'node:fs'
import { copyFile, open, stat, truncate } from 'node:fs/promises'

const LOG_LIMIT = 10 * 1024 * 1024

/** The last lines that were appended to a log after it was `from` bytes long. */
export async function logTail(logPath: string, from: number): Promise<string> {
  if (!existsSync(logPath)) return ''
  const file = await open(logPath, 'r')
  try {
    const { size } = await file.stat()
    const start = Math.max(from, size - 4096)
    const { buffer, bytesRead } = await file.read(Buffer.alloc(4096), 0, 4096, start)
    return buffer.toString('utf8', 0, bytesRead).trim().split('\n').slice(-15).join('\n')
  } finally {
    await file.close()
  }
}

/** The current size of the log in bytes. */
export async function logSize(logPath: string): Promise<number> {
  return (await stat(logPath).catch(() => null))?.size ?? 0
}

/**
 * Keeps the log and one older part below 10 MiB each. The server keeps writing to the same file, opened for appending,
 * so the content is copied and the file is truncated; lines written at that moment may be lost.
 */
export async function limitLog(logPath: string): Promise<void> {
  if ((await logSize(logPath)) < LOG_LIMIT) return
  await copyFile(logPath, `${logPath}.1`)
  await truncate(logPath)
}
