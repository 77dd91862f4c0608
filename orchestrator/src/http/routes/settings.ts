import type { Settings } from '@muster/protocol/http';
import type { Handlers } from '../server/handlers.ts';

/** @param settings the configuration in force, without its secrets */
export const settingsHandlers = (settings: () => Settings) =>
  ({ getSettings: () => settings() }) satisfies Partial<Handlers>;
