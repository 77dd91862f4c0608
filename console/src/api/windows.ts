import { createWindow, listWindows, removeWindow, updateWindow } from '@muster/protocol/http';
import { queryOptions } from '@tanstack/react-query';
import { call } from './client.ts';
import { keys } from './query-keys.ts';

export const windowsQuery = queryOptions({
  queryKey: keys.windows,
  queryFn: ({ signal }) => call(listWindows, { all: true, signal }),
});

export interface NewWindow {
  /** Unix seconds. */
  readonly starts_at: number;
  readonly ends_at: number;
  readonly reason: string;
  /** If absent, the window applies to every agent. */
  readonly selector?: string;
}

export const planWindow = (window: NewWindow) => call(createWindow, { body: window });

export const changeWindow = (id: string, change: { ends_at?: number; reason?: string }) =>
  call(updateWindow, { params: { id }, body: change });

export const deleteWindow = (id: string) => call(removeWindow, { params: { id } });
