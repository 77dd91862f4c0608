import { Worker } from 'node:worker_threads';
import type { Clock } from '../../../lib/src/clock.ts';
import type { Log } from '../../../lib/src/log.ts';
import type { RecentScreen, ScreenSource } from '../domain/terminals/screen-source.ts';
import type { Transcripts } from '../store/transcripts/transcripts.ts';
import type { ScreenJob } from './build-screen.ts';

/** Maximum number of threads. Each thread has a time limit, because hostile output could keep it busy forever. */
const maxThreads = 2;
const timeoutMs = 10_000;
const threadMegabytes = 192;

const unknown = Buffer.from(
  '\x1b[H\x1b[2J[muster: the previous screen cannot be restored; only new output is shown]\r\n',
);

export interface RecentScreenParts {
  readonly transcripts: Pick<Transcripts, 'part'>;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Builds screens of terminal sessions from their transcripts. Each screen is built in its own thread, so that it does
 * not block the event loop and hostile bytes affect only this thread. The thread loads the terminal emulator on first
 * use.
 */
export function createRecentScreen({ transcripts, clock, log }: RecentScreenParts): RecentScreen {
  const waiting: (() => void)[] = [];
  let running = 0;

  const turn = async (): Promise<void> => {
    if (running >= maxThreads) await new Promise<void>((go) => waiting.push(go));
    else running++;
  };
  const done = () => {
    const next = waiting.shift();
    if (next) next();
    else running--;
  };

  const build = async ({ session_id, from, to, cols, rows, opening }: ScreenSource): Promise<Uint8Array | null> => {
    const lines = await transcripts.part(session_id, from, to);
    const job: ScreenJob = { cols, rows, opening, lines };
    const worker = new Worker(new URL('./screen-worker.ts', import.meta.url), {
      workerData: job,
      name: 'screen',
      resourceLimits: { maxOldGenerationSizeMb: threadMegabytes },
    });
    return new Promise<Uint8Array | null>((resolve, reject) => {
      const cancelTimer = clock.after(timeoutMs, () => {
        void worker.terminate();
        reject(new Error(`the thread timed out after ${timeoutMs} ms`));
      });
      worker.once('message', resolve);
      worker.once('error', reject);
      worker.once('exit', () => {
        cancelTimer();
        reject(new Error('the thread exited without a screen'));
      });
    });
  };

  return async (source) => {
    await turn();
    try {
      return (await build(source)) ?? unknown;
    } catch (error) {
      log.warn(
        { err: error, session_id: source.session_id },
        'failed to build the terminal screen from its transcript',
      );
      return unknown;
    } finally {
      done();
    }
  };
}
