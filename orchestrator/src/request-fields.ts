import { AsyncLocalStorage } from 'node:async_hooks';

interface ServedRequest {
  readonly id: string;
  hasWritten: boolean;
}

const requests = new AsyncLocalStorage<ServedRequest>();

/**
 * Runs `work`. During this call, including its asynchronous calls, {@link requestFields} returns the request ID, and
 * {@link hasWritten} whether the request has changed the database.
 */
export const withinRequest = <T>(requestId: string, work: () => T): T =>
  requests.run({ id: requestId, hasWritten: false }, work);

/** Records that a write of the request has been committed. Does nothing outside a request. */
export function noteWrite(): void {
  const request = requests.getStore();
  if (request) request.hasWritten = true;
}

/** Reports whether a write of the request has been committed; false outside a request. */
export const hasWritten = (): boolean => requests.getStore()?.hasWritten ?? false;

/** Returns fields for log lines that are written while a request is being served; no fields outside a request. */
export function requestFields(): { request_id?: string } {
  const request = requests.getStore();
  return request === undefined ? {} : { request_id: request.id };
}
