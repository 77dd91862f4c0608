import { AsyncLocalStorage } from 'node:async_hooks';

interface ServedRequest {
  readonly id: string;
  hasWritten: boolean;
  hasEnded: boolean;
}

const requests = new AsyncLocalStorage<ServedRequest>();

/**
 * Runs `work`. During this call, including its asynchronous calls, {@link requestFields} returns the request ID, and
 * {@link hasWritten} whether the request has changed the database.
 */
export const withinRequest = <T>(requestId: string, work: () => Promise<T>): Promise<T> => {
  const request: ServedRequest = { id: requestId, hasWritten: false, hasEnded: false };
  return requests.run(request, () =>
    work().finally(() => {
      request.hasEnded = true;
    }),
  );
};

/** Records that a write of the request has been committed. Does nothing outside a request. */
export function noteWrite(): void {
  const request = requests.getStore();
  if (request) request.hasWritten = true;
}

/**
 * Reports whether a write of the request has been committed; false outside a request, and for work that a request
 * started and that continues after its end.
 */
export function hasWritten(): boolean {
  const request = requests.getStore();
  return request?.hasWritten === true && !request.hasEnded;
}

/** Returns fields for log lines that are written while a request is being served; no fields outside a request. */
export function requestFields(): { request_id?: string } {
  const request = requests.getStore();
  return request === undefined ? {} : { request_id: request.id };
}
