import { getKind, listKinds } from '@muster/protocol/http';
import { routeQuery } from '../query-client.ts';
import { keys } from '../query-keys.ts';

export const kindsQuery = routeQuery(keys.kinds, listKinds, { all: true });

export const kindQuery = (name: string) => routeQuery(keys.kind(name), getKind, { params: { name } });
