import {
  attachTerminal as attach,
  closeTerminal as close,
  getTerminal,
  getTranscript,
  listTerminals,
  openTerminal as open,
  type TerminalSession,
} from '@muster/protocol/http';
import { infiniteQueryOptions } from '@tanstack/react-query';
import { call } from '../client.ts';
import { queryClient, routeQuery } from '../query-client.ts';
import { keys } from '../query-keys.ts';

const pageSize = 100;

/**
 * Terminal sessions in newest-first order, in pages.
 * @param status empty for every status
 */
export const terminalsQuery = (status: TerminalSession['status'] | '') =>
  infiniteQueryOptions({
    queryKey: [...keys.terminals, status],
    queryFn: ({ pageParam, signal }) =>
      call(listTerminals, {
        query: { limit: String(pageSize), offset: String(pageParam), ...(status === '' ? {} : { status }) },
        signal,
      }),
    initialPageParam: 0,
    getNextPageParam: (last, all) => (last.length < pageSize ? null : all.length * pageSize),
  });

export const terminalQuery = (session_id: string) =>
  routeQuery(keys.terminal(session_id), getTerminal, { params: { session_id } });

/** Fetches a terminal session again, because no event reports that a viewer left. */
export const refetchTerminal = (session_id: string): void =>
  void queryClient.invalidateQueries({ queryKey: keys.terminal(session_id) });

export type TerminalMode = 'control' | 'view';

export interface TerminalAddress {
  readonly session_id: string;
  /** URL for a WebSocket connection, valid for 30 s. Can be used only once. */
  readonly ws_url: string;
}

export const openTerminal = (
  node_id: string,
  options: { readonly cols: number; readonly rows: number; readonly shell: string },
): Promise<TerminalAddress> =>
  call(open, {
    params: { node_id },
    query: {
      cols: String(options.cols),
      rows: String(options.rows),
      ...(options.shell === '' ? {} : { shell: options.shell }),
    },
  });

export const attachTerminal = (session_id: string, mode: TerminalMode): Promise<TerminalAddress> =>
  call(attach, { params: { session_id }, body: { mode } });

export async function closeTerminal(session_id: string): Promise<void> {
  await call(close, { params: { session_id } });
  await Promise.all([
    queryClient.invalidateQueries({ queryKey: keys.terminals }),
    queryClient.invalidateQueries({ queryKey: keys.terminal(session_id) }),
  ]);
}

export async function readTranscript(
  session_id: string,
  format: 'raw' | 'asciicast',
  signal?: AbortSignal,
): Promise<AsyncIterable<Uint8Array>> {
  const answer = await call(getTranscript, {
    params: { session_id },
    query: { format },
    ...(signal ? { signal } : {}),
  });
  return answer.body;
}

export async function downloadTranscript(session_id: string, format: 'raw' | 'asciicast'): Promise<Blob> {
  const pieces: BlobPart[] = [];
  for await (const piece of await readTranscript(session_id, format)) pieces.push(piece as Uint8Array<ArrayBuffer>);
  return new Blob(pieces, { type: 'application/octet-stream' });
}

/**
 * Opens a terminal's WebSocket.
 * @param ws_url as returned by the API
 */
export function openTerminalSocket(ws_url: string): WebSocket {
  const address = new URL(ws_url, window.location.href);
  address.protocol = address.protocol === 'http:' ? 'ws:' : 'wss:';
  const socket = new WebSocket(address);
  socket.binaryType = 'arraybuffer';
  return socket;
}
