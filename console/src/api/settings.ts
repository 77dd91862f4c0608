import { getSettings } from '@muster/protocol/http';
import { routeQuery } from './query-client.ts';
import { keys } from './query-keys.ts';

export const settingsQuery = routeQuery(keys.settings, getSettings, {});
