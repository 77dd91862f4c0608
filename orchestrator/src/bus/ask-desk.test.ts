import { expect, test } from 'vitest';
import { z } from 'zod';
import { ManualClock } from '../../../lib/test/manual-clock.ts';
import { AskDesk } from './ask-desk.ts';
import type { Ask } from './asks.ts';
import type { Message } from './messages.ts';

const echo: Ask<string, string> = { topic: 'echo', question: z.string(), answer: z.string() };

function open() {
  const clock = new ManualClock();
  const sent: { to: string; message: Message }[] = [];
  const silent = () => {};
  let ids = 0;
  const desk = new AskDesk({
    clock,
    newId: () => `${++ids}`,
    send: (to, message) => sent.push({ to, message }) > 0,
    log: { debug: silent, info: silent, warn: silent, error: silent },
  });
  return { clock, sent, desk };
}

test('accepts an answer only from the process that it asked, and only once', async () => {
  const { desk } = open();
  const asked = desk.ask('a', echo, 'hello', { milliseconds: 1_000 });
  desk.answered('b', { type: 'answer', id: '1', answer: 'from b' });
  desk.answered('a', { type: 'answer', id: '2', answer: 'another question' });
  desk.answered('a', { type: 'answer', id: '1', answer: 'from a' });
  desk.answered('a', { type: 'answer', id: '1', answer: 'again' });
  expect(await asked).toBe('from a');
});

test('fails if the answer is late, has an invalid form, or is an unknown error', async () => {
  const { desk, clock } = open();
  const asked = [1, 2, 3].map(() => desk.ask('a', echo, 'hello', { milliseconds: 1_000 }));
  desk.answered('a', { type: 'answer', id: '2', answer: 7 });
  desk.answered('a', { type: 'refusal', id: '3', code: 'toString', detail: 'x' });
  clock.advance(1_000);
  desk.answered('a', { type: 'answer', id: '1', answer: 'late' });
  const reasons = (await Promise.allSettled(asked)).map((one) => (one as PromiseRejectedResult).reason.reason);
  expect(reasons).toEqual(['timeout', 'failed', 'failed']);
});

test('limits the number of open questions to and from this process', async () => {
  const { desk, sent } = open();
  const asked = Array.from({ length: 1_000 }, () => desk.ask('a', echo, 'hello', { milliseconds: 1_000 }));
  await expect(desk.ask('a', echo, 'one more', { milliseconds: 1_000 })).rejects.toMatchObject({ reason: 'busy' });
  desk.answer(echo, () => new Promise(() => {}));
  sent.length = 0;
  const until = new ManualClock().now() + 1_000;
  const asks = (from: string, count: number) => {
    for (let id = 0; id < count; id++)
      void desk.asked(from, { type: 'ask', id: `${from}${id}`, topic: 'echo', until, question: '' });
  };
  asks('b', 251);
  for (const from of ['c', 'd', 'e', 'f']) asks(from, 250);
  expect(sent.map(({ to }) => to)).toEqual(['b', ...Array(250).fill('f')]);
  expect(sent[0]).toMatchObject({ message: { type: 'refusal', id: 'b250', code: null } });
  desk.close();
  expect((await Promise.allSettled(asked)).every(({ status }) => status === 'rejected')).toBe(true);
});

test('does not answer or count a question after its deadline, even if the handler ignores the abort signal', async () => {
  const { desk, clock, sent } = open();
  const answers: ((text: string) => void)[] = [];
  desk.answer(echo, () => new Promise((resolve) => answers.push(resolve)));
  const ask = (id: number) =>
    desk.asked('b', { type: 'ask', id: `${id}`, topic: 'echo', until: clock.now() + 1_000, question: '' });
  const asked = Array.from({ length: 250 }, (_, id) => ask(id));
  clock.advance(1_000);
  for (const answer of answers.splice(0)) answer('late');
  await Promise.all(asked);
  expect(sent).toEqual([]);
  const next = ask(250);
  answers[0]?.('in time');
  await next;
  expect(sent).toEqual([{ to: 'b', message: { type: 'answer', id: '250', answer: 'in time' } }]);
});

test('reports a process as unreachable if it does not know this process yet', async () => {
  const { desk } = open();
  const asked = desk.ask('a', echo, 'hello', { milliseconds: 1_000 });
  desk.answered('a', { type: 'refusal', id: '1', code: 'unknown_sender', detail: '' });
  await expect(asked).rejects.toMatchObject({ reason: 'unreachable' });
});

test('reports whether the other process may have acted on a question without an answer', async () => {
  const { desk, clock } = open();
  const ask = () => desk.ask('a', echo, 'hello', { milliseconds: 1_000 });
  const late = ask();
  clock.advance(1_000);
  await expect(late).rejects.toMatchObject({ reason: 'timeout', isOutcomeUnknown: true });
  const cutOff = ask();
  desk.disconnected();
  await expect(cutOff).rejects.toMatchObject({ reason: 'disconnected', isOutcomeUnknown: true });
  const refused = ask();
  desk.answered('a', { type: 'refusal', id: '3', code: null, detail: '' });
  await expect(refused).rejects.toMatchObject({ reason: 'failed', isOutcomeUnknown: false });
});
