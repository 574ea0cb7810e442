export function stopWithNpm(event: string): void
