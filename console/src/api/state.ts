import { getState } from '@muster/protocol/http';
import { routeQuery } from './query-client.ts';
import { keys } from './query-keys.ts';

export const stateQuery = (node_id: string) => routeQuery(keys.state(node_id), getState, { params: { node_id } });
