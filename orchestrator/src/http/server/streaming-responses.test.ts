import { EventEmitter, once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import { StreamingResponses } from './streaming-responses.ts';

function answer() {
  const emitter = Object.assign(new EventEmitter(), { destroyed: false });
  const destroy = () => {
    emitter.destroyed = true;
    emitter.emit('close');
  };
  return Object.assign(emitter, { destroy }) as unknown as ServerResponse;
}
const ada = { operator_id: 'ada', token_hash: 'first' };

test('closes all other responses to a removed operator before confirming the removal', () => {
  const responses = new StreamingResponses();
  const [download, eventStream, others] = [answer(), answer(), answer()];
  responses.add(ada, download, 'abort');
  responses.add(ada, eventStream, 'abort-after-grace');
  responses.add({ operator_id: 'bob', token_hash: 'his' }, others, 'abort');
  responses.cutOff('ada');
  expect([download, eventStream, others].map(({ destroyed }) => destroyed)).toEqual([true, false, false]);
});

test('closes the responses of an ended session, and keeps the responses of a renewed session', () => {
  const responses = new StreamingResponses();
  const [mine, other] = [answer(), answer()];
  responses.add(ada, mine, 'abort');
  responses.add({ ...ada, token_hash: 'another' }, other, 'abort');
  responses.sessionEnded('first', 'second');
  responses.sessionEnded('first', null);
  expect(mine.destroyed).toBe(false);
  responses.sessionEnded('second', null);
  expect([mine.destroyed, other.destroyed]).toEqual([true, false]);
});

test('completes the response that confirms a removal, no matter how long it takes', async () => {
  const responses = new StreamingResponses();
  const [acknowledgement, eventStream] = [answer(), answer()];
  responses.add(ada, acknowledgement, 'complete');
  responses.add(ada, eventStream, 'abort-after-grace');
  const graceIsOver = once(eventStream, 'close');
  responses.cutOff('ada');
  await graceIsOver;
  expect(acknowledgement.destroyed).toBe(false);
});
