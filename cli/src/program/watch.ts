import type { Context } from '../context/context.ts';
import { createLiveBlock } from '../context/live-block.ts';
import { createOutput } from '../context/output.ts';
import type { Sink } from '../context/sink.ts';
import { followStream } from '../execution/event-stream.ts';
import { exits, usageError } from '../exit.ts';
import { timestamp } from '../text/style.ts';
import { explain } from '../transport/explain.ts';
import type { Surroundings } from './surroundings.ts';

/** Minimum time between two requests, in milliseconds, so that a busy fleet does not cause a request for each event. */
const restMs = 1_000;
/** Redraw interval in milliseconds without events. Keeps ages such as `3m ago` current. */
const idleMs = 15_000;
/** Milliseconds between requests if there is no event stream. */
const pollMs = 5_000;

/**
 * Reruns a command after each event and redraws its output in place, until Ctrl-C.
 * @param title the words of the command
 * @throws the error from the command, except while the orchestrator is unavailable
 */
export async function watch(
  context: Context,
  { stdout, env, now, sleep }: Surroundings,
  title: string,
  verb: (context: Context) => Promise<number | undefined>,
): Promise<never> {
  const { color, verbose } = context.out.style;
  if (context.out.json || stdout.isTTY !== true)
    throw usageError('--watch needs a terminal', 'In a pipe, follow the events: muster events --json');
  const block = createLiveBlock(stdout, true);
  let changes: Changes | null = null;
  for (let shown: string[] = []; ; ) {
    let text = '';
    const sink: Sink = {
      write: (piece) => (text += piece),
      isTTY: true,
      // Avoids the last column, because the block truncates lines that fill it.
      columns: (stdout.columns ?? 80) - 1,
      rows: stdout.rows,
    };
    const out = createOutput({ stdout: sink, stderr: { ...sink, isTTY: false }, env, json: false, verbose, now });
    let state = 'live';
    try {
      await verb({ ...context, out });
      shown = text.trimEnd().split('\n');
    } catch (error) {
      if (explain(error).exit !== exits.unreachable || shown.length === 0) throw error;
      state = 'the orchestrator does not answer';
    }
    const { rows } = block.size();
    const room = rows - 4;
    const hidden = shown.length - room;
    block.draw([
      color.dim(`${title} · ${state} · ${timestamp(now()).slice(11, 19)} UTC · Ctrl-C ends`),
      '',
      ...(hidden > 0 ? [...shown.slice(0, room), color.dim(`… ${hidden + 1} more lines`)] : shown),
    ]);
    changes ??= await listen(context);
    await sleep(restMs);
    await changes.next();
  }
}

interface Changes {
  /** Resolves after the next event, or after some time without an event. */
  next(): Promise<void>;
}

/** Follows the event stream if the operator is signed in. `muster status` needs no sign-in. */
async function listen(context: Context): Promise<Changes> {
  const { sleep } = context;
  let isDue = false;
  let waitMs = idleMs;
  let wake = () => {};
  const silent = { ...context.out, note: () => undefined };
  const follow = async () => {
    const { call, session } = await context.connect();
    if (!(await session.isOpen())) throw new Error('not signed in');
    for await (const _ of followStream({ out: silent, sleep }, call, {})) {
      isDue = true;
      wake();
    }
  };
  follow().catch(() => {
    waitMs = pollMs;
  });
  return {
    next: async () => {
      if (!isDue)
        await Promise.race([
          sleep(waitMs),
          new Promise<void>((resolve) => {
            wake = resolve;
          }),
        ]);
      isDue = false;
    },
  };
}
