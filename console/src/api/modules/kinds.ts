import { getKind, listKinds } from '@muster/protocol/http';
import { queryOptions } from '@tanstack/react-query';
import { call } from '../client.ts';
import { keys } from '../query-keys.ts';

export const kindsQuery = queryOptions({
  queryKey: keys.kinds,
  queryFn: ({ signal }) => call(listKinds, { all: true, signal }),
});

export const kindQuery = (name: string) =>
  queryOptions({
    queryKey: keys.kind(name),
    queryFn: ({ signal }) => call(getKind, { params: { name }, signal }),
  });
