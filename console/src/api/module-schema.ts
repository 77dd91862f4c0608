import { queryOptions } from '@tanstack/react-query';
import { Unreachable } from './client.ts';

/** Where the orchestrator serves the JSON Schema of modules: open to all, and outside of the API. */
export const moduleSchemaPath = '/schemas/module/v1.json';

/** The schema of this orchestrator's version: it only changes with that. */
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
