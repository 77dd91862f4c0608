import { listSecrets } from '@muster/protocol/http';
import { queryOptions } from '@tanstack/react-query';
import { call } from './client.ts';
import { keys } from './keys.ts';

/** All secrets, by name; never their values. */
export const secretsQuery = queryOptions({
  queryKey: keys.secrets,
  queryFn: ({ signal }) => call(listSecrets, { all: true, signal }),
});
