import { AsyncLocalStorage } from 'node:async_hooks';

/** What the parts need of a log; pino is one. Fields first, then a sentence for people. Never a secret in either. */
export interface Log {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

const requests = new AsyncLocalStorage<string>();

/** Runs what a request asks for: {@link requestFields} finds its id in all that follows from it. */
export const withinRequest = <T>(requestId: string, work: () => T): T => requests.run(requestId, work);

/** What every line of a log carries that is written on behalf of a request. */
export function requestFields(): { request_id?: string } {
  const requestId = requests.getStore();
  return requestId === undefined ? {} : { request_id: requestId };
}
