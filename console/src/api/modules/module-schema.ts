import { queryOptions } from '@tanstack/react-query';
import { Unreachable } from '../client.ts';

/** The path of the JSON Schema of modules. It is public and not part of the API. */
export const moduleSchemaPath = '/schemas/module/v1.json';

/** Changes only with the orchestrator's version. */
export const moduleSchemaQuery = queryOptions({
  queryKey: ['module-schema'],
  queryFn: async ({ signal }): Promise<object> => {
    const answer = await fetch(moduleSchemaPath, { signal, credentials: 'omit', redirect: 'error' }).catch((error) => {
      throw signal.aborted ? error : new Unreachable(error);
    });
    if (!answer.ok) throw new Error(`the module schema could not be loaded: the answer was ${answer.status}`);
    return (await answer.json()) as object;
  },
  gcTime: Number.POSITIVE_INFINITY,
});
