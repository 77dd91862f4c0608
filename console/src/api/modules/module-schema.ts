import { queryOptions } from '@tanstack/react-query';
import { Unreachable } from '../client.ts';

/** Path of the JSON Schema for modules. It is public and outside the API prefix. */
export const moduleSchemaPath = '/schemas/module/v1.json';

/** The schema changes only when the orchestrator is upgraded. */
export const moduleSchemaQuery = queryOptions({
  queryKey: ['module-schema'],
  queryFn: async ({ signal }): Promise<object> => {
    const answer = await fetch(moduleSchemaPath, { signal, credentials: 'omit', redirect: 'error' }).catch((error) => {
      throw signal.aborted ? error : new Unreachable(error);
    });
    if (!answer.ok)
      throw new Error(`the module schema could not be loaded: the orchestrator responded with ${answer.status}`);
    return (await answer.json()) as object;
  },
  gcTime: Number.POSITIVE_INFINITY,
});
