import { ApiError, type Client } from '@muster/protocol/client';
import { followEvents } from '@muster/protocol/http';
import { type EventFrame, EventFrameReader } from '../../../client/src/event-frames.ts';
import type { Context } from '../context/context.ts';
import { exits } from '../exit.ts';
import { explain } from '../transport/explain.ts';

interface StreamOptions {
  /** Comma-separated. */
  category?: string | undefined;
  node_id?: string | undefined;
  /** The position of the last received event in the log. The stream starts after this position. */
  after?: string | undefined;
}

const firstWaitMs = 1_000;
const longestWaitMs = 30_000;

/**
 * Follows events as they happen. Reconnects after a lost connection, and resumes without missing a recorded event.
 * @throws the error if the orchestrator refuses the request or the first connection fails
 */
export async function* followStream(
  { out, sleep }: Pick<Context, 'out' | 'sleep'>,
  call: Client,
  { after, ...filter }: StreamOptions,
): AsyncGenerator<EventFrame> {
  let position = after ?? null;
  let wasOpen = false;
  let isLost = false;
  for (let wait = firstWaitMs; ; wait = Math.min(wait * 2, longestWaitMs)) {
    try {
      const { body } = await call(followEvents, {
        query: {
          ...(filter.category === undefined ? {} : { category: filter.category }),
          ...(filter.node_id === undefined ? {} : { node_id: filter.node_id }),
          ...(position === null ? {} : { last_event_id: position }),
        },
      });
      if (isLost) out.note(out.noteColor.dim('… reconnected'));
      wasOpen = true;
      isLost = false;
      const reader = new EventFrameReader(position);
      for await (const piece of piecesOf(body)) {
        wait = firstWaitMs / 2;
        for (const frame of reader.feed(piece)) yield frame;
        position = reader.lastId;
      }
    } catch (error) {
      const explanation = explain(error);
      const isTemporary =
        explanation.exit === exits.unreachable || (error instanceof ApiError && error.retryAfter !== null);
      if (!wasOpen || !isTemporary) throw error;
      if (error instanceof ApiError && error.retryAfter !== null) wait = Math.max(wait, error.retryAfter * 1000);
      if (!isLost) out.note(out.noteColor.dim(`… ${explanation.message.split('\n')[0]}; retrying`));
      isLost = true;
    }
    await sleep(wait);
  }
}

/** Yields the chunks of a body. Finishes without an error if the connection breaks; the caller reconnects. */
async function* piecesOf(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const pieces = body[Symbol.asyncIterator]();
  for (;;) {
    const next = await pieces.next().catch(() => null);
    if (next === null || next.done) return;
    yield next.value;
  }
}
