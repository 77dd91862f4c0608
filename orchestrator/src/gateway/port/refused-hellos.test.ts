import { expect, test } from 'vitest';
import { RefusedHellos } from './refused-hellos.ts';

test('delays a network that has used its burst, until a token is refilled', () => {
  const hellos = new RefusedHellos({ perSecond: 2, burst: 3 });
  for (let at = 0; at < 3; at++) {
    expect(hellos.mayBegin('A', 0)).toBe(true);
    hellos.charge('A', 1, 0);
  }
  expect(hellos.mayBegin('A', 0)).toBe(false);
  expect(hellos.mayBegin('A', 499)).toBe(false);
  expect(hellos.mayBegin('A', 500)).toBe(true);
  expect(hellos.mayBegin('B', 0)).toBe(true);
});

test('never delays a network whose hellos are not refused', () => {
  const hellos = new RefusedHellos({ perSecond: 2, burst: 3 });
  for (let at = 0; at < 10_000; at++) expect(hellos.mayBegin('A', 0)).toBe(true);
});

test('charges a fraction of a token for refusing an agent that proved possession of its key', () => {
  const hellos = new RefusedHellos({ perSecond: 20, burst: 100 });
  for (let at = 0; at < 990; at++) hellos.charge('A', 0.1, 0);
  expect(hellos.mayBegin('A', 0)).toBe(true);
  for (let at = 0; at < 10; at++) hellos.charge('A', 0.1, 0);
  expect(hellos.mayBegin('A', 0)).toBe(false);
});

test('charges at most one burst for concurrent handshakes', () => {
  const hellos = new RefusedHellos({ perSecond: 1, burst: 2 });
  for (let at = 0; at < 100; at++) hellos.charge('A', 1, 0);
  expect(hellos.mayBegin('A', 2_999)).toBe(false);
  expect(hellos.mayBegin('A', 3_000)).toBe(true);
});

test('stores a bounded number of networks, and evicts the least recently charged', () => {
  const hellos = new RefusedHellos({ perSecond: 1, burst: 1 });
  for (let at = 0; at <= 1024; at++) hellos.charge(`N${at}`, 1, 0);
  expect(hellos.mayBegin('N0', 0)).toBe(true);
  expect(hellos.mayBegin('N1', 0)).toBe(false);
});

test('delays a /48 network whose client uses a new /64 network for each hello', () => {
  const hellos = new RefusedHellos({ perSecond: 1, burst: 2 });
  for (let at = 0; at < 15; at++) hellos.charge(`2001:db8:0:${at.toString(16)}`, 1, 0);
  expect(hellos.mayBegin('2001:db8:0:ff', 0)).toBe(true);
  hellos.charge('2001:db8:0:10', 1, 0);
  expect(hellos.mayBegin('2001:db8:0:ff', 0)).toBe(false);
  expect(hellos.mayBegin('2001:db8:1:0', 0)).toBe(true);
});
