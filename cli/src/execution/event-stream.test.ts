import { ApiError, type Client } from '@muster/protocol/client';
import { expect, test } from 'vitest';
import type { EventFrame } from '../../../client/src/event-frames.ts';
import type { Output } from '../context/output.ts';
import { CliError, exits } from '../exit.ts';
import { colorsFor } from '../text/style.ts';
import { followStream } from './event-stream.ts';

type Step = Error | { text: string; cut?: boolean };

const lost = () => new CliError(exits.unreachable, 'unreachable', 'no orchestrator answers at https://x: gone');
const problem = (status: number, code: string, wait: number | null = null) =>
  new ApiError({ type: '', title: '', status, detail: code, instance: '', code }, wait);

/** Creates a client that responds to each request with the next step, and records the requests and the waits. */
function stand(steps: Step[]) {
  const lastEventIds: (string | undefined)[] = [];
  const waits: number[] = [];
  const notes: string[] = [];
  const call = (async (_route: unknown, { query }: { query: Record<string, string> }) => {
    lastEventIds.push(query.last_event_id);
    const step = steps.shift() ?? problem(404, 'over');
    if (step instanceof Error) throw step;
    return {
      type: 'text/event-stream',
      body: (async function* () {
        yield new TextEncoder().encode(step.text);
        if (step.cut) throw Object.assign(new Error('aborted'), { code: 'ECONNRESET' });
      })(),
    };
  }) as unknown as Client;
  const out = { note: (text: string) => void notes.push(text), noteColor: colorsFor(false) } as unknown as Output;
  const sleep = async (milliseconds: number) => void waits.push(milliseconds);
  return { lastEventIds, waits, notes, stream: () => followStream({ out, sleep }, call, {}) };
}

async function read(stream: AsyncGenerator<EventFrame>) {
  const got: string[] = [];
  let error: unknown;
  try {
    for await (const { data } of stream) got.push(data);
  } catch (thrown) {
    error = thrown;
  }
  return { got, error };
}

test('resumes an event stream after its last complete event after any interruption', async () => {
  const { lastEventIds, stream, notes } = stand([
    { text: 'id: 5\n\nid: 6\ndata: a\n\nid: 7\ndata: ha', cut: true },
    lost(),
    { text: 'id: 7\ndata: half\n\n' },
  ]);
  const { got, error } = await read(stream());
  expect(got).toEqual(['a', 'half']);
  expect(lastEventIds).toEqual([undefined, '6', '6', '7']);
  expect(notes).toEqual(['… no orchestrator answers at https://x: gone; retrying', '… reconnected']);
  // A refusal closes the stream.
  expect(error).toMatchObject({ problem: { code: 'over' } });
});

test('fails immediately if the first connection fails', async () => {
  expect(await read(stand([lost()]).stream())).toMatchObject({ got: [], error: { exit: exits.unreachable } });
});

test('backs off after failures, honors Retry-After, and resets the backoff after an event', async () => {
  const { waits, stream } = stand([
    { text: 'id: 1\n\n' },
    lost(),
    lost(),
    problem(429, 'rate_limited', 17),
    lost(),
    lost(),
    { text: 'id: 2\n\n' },
  ]);
  await read(stream());
  expect(waits).toEqual([500, 1000, 2000, 17_000, 30_000, 30_000, 500]);
});
