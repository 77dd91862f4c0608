import type { Settings } from '@muster/protocol/http';
import type { Handlers } from '../../server/handlers.ts';

/** @param settings returns the current configuration without secrets */
export const settingsHandlers = (settings: () => Settings) =>
  ({ getSettings: () => settings() }) satisfies Partial<Handlers>;
