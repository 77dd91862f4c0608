import { createWindow, listWindows, removeWindow, updateWindow } from '@muster/protocol/http';
import { call } from './client.ts';
import { routeQuery } from './query-client.ts';
import { keys } from './query-keys.ts';

export const windowsQuery = routeQuery(keys.windows, listWindows, { all: true });

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
