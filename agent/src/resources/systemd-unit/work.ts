import type { Item } from '../provider/provider.ts';
import type { SeenService, ServiceBefore } from './seen.ts';

export type ServiceItem = Item<SeenService, ServiceBefore>;
export type Enabling = 'enable' | 'enable-runtime' | 'disable' | 'reenable';
export type Process = 'stop' | 'restart' | 'reload' | 'start';

/** Pending changes to one unit. */
export interface Work {
  name: string;
  item: ServiceItem;
  /** Whether the unit is removed. It must be stopped and disabled while systemd still has the unit loaded. */
  goes: boolean;
  /** Writes, restores, or deletes the unit's files. */
  changeFiles: (() => Promise<void>) | null;
  /** Whether the content of the files changes, so that systemd has to reload them. */
  rereads: boolean;
  enabling: Enabling | null;
  process: Process | null;
  failure: string | null;
  /** Last output of a failed unit. */
  words?: string;
}
