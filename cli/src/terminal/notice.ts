/** What an orchestrator says on a terminal's WebSocket besides its bytes. */
export type Notice =
  | { readonly type: 'resize'; readonly cols: number; readonly rows: number }
  | { readonly type: 'exit'; readonly code: number | null; readonly signal: string | null }
  | { readonly type: 'error'; readonly code: string; readonly message: string };

/** @returns null for what is not understood: a later orchestrator may say more */
export function readNotice(text: string): Notice | null {
  let said: Record<string, unknown> | null = null;
  try {
    said = JSON.parse(text);
  } catch {
    return null;
  }
  if (said === null || typeof said !== 'object') return null;
  const { type, cols, rows, code, signal, message } = said;
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
