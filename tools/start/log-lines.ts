/**
 * Selects the lines of a program's output that explain its exit: errors in its log, and text outside the log.
 * @param lines JSON lines of the log, and other text
 * @returns readable lines, the oldest first
 */
export function informativeLines(lines: readonly string[]): string[] {
  return lines.flatMap((line) => {
    const entry = parse(line);
    if (entry === null) return line.trim() === '' ? [] : [line];
    // The orchestrator's log, written by pino, has numeric levels; the agent's log has level names.
    const { level, msg, message, err, error } = entry;
    if (!(level === 'error' || (typeof level === 'number' && level >= 50))) return [];
    const cause = typeof err === 'object' && err !== null ? (err as { message?: unknown }).message : error;
    const parts = [msg ?? message, cause].filter((part) => typeof part === 'string');
    return [parts.length === 0 ? line : parts.join(': ')];
  });
}

function parse(line: string): Record<string, unknown> | null {
  if (!line.startsWith('{')) return null;
  try {
    return JSON.parse(line);
  } catch {
    return null;
  }
}
