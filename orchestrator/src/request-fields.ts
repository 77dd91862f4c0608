import { AsyncLocalStorage } from 'node:async_hooks';

const requests = new AsyncLocalStorage<string>();

/** Runs `work`. During this call, including its asynchronous calls, {@link requestFields} returns the request ID. */
export const withinRequest = <T>(requestId: string, work: () => T): T => requests.run(requestId, work);

/** Returns fields for log lines that are written while a request is being served; no fields outside a request. */
export function requestFields(): { request_id?: string } {
  const requestId = requests.getStore();
  return requestId === undefined ? {} : { request_id: requestId };
}
