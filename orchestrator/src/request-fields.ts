import { AsyncLocalStorage } from 'node:async_hooks';

const requests = new AsyncLocalStorage<string>();

/** Runs `work` so that {@link requestFields} returns the request's ID, in asynchronous calls too. */
export const withinRequest = <T>(requestId: string, work: () => T): T => requests.run(requestId, work);

/** The fields of a log line that is written while a request is served; none outside a request. */
export function requestFields(): { request_id?: string } {
  const requestId = requests.getStore();
  return requestId === undefined ? {} : { request_id: requestId };
}
