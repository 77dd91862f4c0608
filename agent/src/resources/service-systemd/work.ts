import type { Item } from '../provider/provider.ts';
import type { SeenService, ServiceBefore } from './seen.ts';

export type ServiceItem = Item<SeenService, ServiceBefore>;
export type Enabling = 'enable' | 'enable-runtime' | 'disable' | 'reenable';
export type Process = 'stop' | 'restart' | 'reload' | 'start';

/** What is due about one unit. */
export interface Work {
  name: string;
  item: ServiceItem;
  /** The unit itself goes: it has to be stopped and disabled while it is still known. */
  goes: boolean;
  /** Writes, restores or deletes what the unit is made of. */
  changeFiles: (() => Promise<void>) | null;
  /** Another content, so that systemd has to read it. */
  rereads: boolean;
  enabling: Enabling | null;
  process: Process | null;
  failure: string | null;
  /** What it said last, where it failed. */
  words?: string;
}
