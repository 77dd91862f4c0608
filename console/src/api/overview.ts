import { getOverview } from '@muster/protocol/http';
import { routeQuery } from './query-client.ts';
import { keys } from './query-keys.ts';

export const overviewQuery = routeQuery(keys.overview, getOverview, {});
