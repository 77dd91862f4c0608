import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import { LastingAnswers } from './streaming-responses.ts';

function answer() {
  const emitter = Object.assign(new EventEmitter(), { destroyed: false });
  const destroy = () => {
    emitter.destroyed = true;
    emitter.emit('close');
  };
  return Object.assign(emitter, { destroy }) as unknown as ServerResponse;
}
const ada = { operator_id: 'ada', token_hash: 'first' };

test('cuts the answers of an operator off before the removal is acknowledged, but for the one that tells of it', () => {
  const lasting = new LastingAnswers();
  const [download, telling, others] = [answer(), answer(), answer()];
  lasting.add(ada, download, false);
  lasting.add(ada, telling, true);
  lasting.add({ operator_id: 'bob', token_hash: 'his' }, others, false);
  lasting.cutOff('ada');
  expect([download, telling, others].map(({ destroyed }) => destroyed)).toEqual([true, false, false]);
});

test('cuts the answers of a session off that was ended, and keeps those of one that was renewed', () => {
  const lasting = new LastingAnswers();
  const [mine, other] = [answer(), answer()];
  lasting.add(ada, mine, false);
  lasting.add({ ...ada, token_hash: 'another' }, other, false);
  lasting.sessionEnded('first', 'second');
  lasting.sessionEnded('first', null);
  expect(mine.destroyed).toBe(false);
  lasting.sessionEnded('second', null);
  expect([mine.destroyed, other.destroyed]).toEqual([true, false]);
});
