/** A text message that the orchestrator sends on a terminal's WebSocket. Binary messages contain output. */
export type TerminalNotice =
  | { readonly type: 'resize'; readonly cols: number; readonly rows: number }
  | { readonly type: 'exit'; readonly code: number | null; readonly signal: string | null }
  | { readonly type: 'error'; readonly code: string; readonly message: string };

/** Parses a text message. Returns null if it is not a notice, or has a type that only a later orchestrator sends. */
export function readTerminalNotice(text: string): TerminalNotice | null {
  let value: Record<string, unknown> | null = null;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  if (value === null || typeof value !== 'object') return null;
  const { type, cols, rows, code, signal, message } = value;
  if (type === 'resize' && isSize(cols) && isSize(rows)) return { type, cols, rows };
  if (type === 'exit')
    return {
      type,
      code: Number.isInteger(code) && (code as number) >= 0 && (code as number) <= 255 ? (code as number) : null,
      signal: typeof signal === 'string' ? signal : null,
    };
  if (type === 'error')
    return {
      type,
      code: typeof code === 'string' ? code : 'internal',
      message: typeof message === 'string' ? message : '',
    };
  return null;
}

const isSize = (value: unknown): value is number => Number.isInteger(value) && (value as number) > 0;
