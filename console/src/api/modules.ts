import { getModule, listModules } from '@muster/protocol/http';
import { queryOptions } from '@tanstack/react-query';
import { call } from './client.ts';
import { keys } from './keys.ts';

export const modulesQuery = queryOptions({
  queryKey: keys.modules,
  queryFn: ({ signal }) => call(listModules, { all: true, signal }),
});

export const moduleQuery = (name: string, revision?: number) =>
  queryOptions({
    queryKey: keys.module(name, revision),
    queryFn: ({ signal }) =>
      call(getModule, {
        params: { name },
        query: revision === undefined ? {} : { revision: String(revision) },
        signal,
      }),
  });
