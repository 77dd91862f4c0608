import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import { configureSqlite, openSqliteFile } from './sqlite-connection.ts';
import { LostSync, UnitGroups } from './sqlite-group.ts';
import type { FromWriter, ToWriter, WireUnit } from './sqlite-message.ts';

/**
 * The thread that owns the only writing connection. It takes units as they come, puts as many as have queued into one
 * commit, and answers after it. While a commit waits for the disk the next group gathers: a slow disk makes larger
 * groups, and the main thread never waits.
 */

export interface WriterOptions {
  readonly file: string;
  /** Bounds of one commit. */
  readonly maxGroupUnits: number;
  readonly maxGroupMs: number;
  /** For tests and benches: how long every commit takes at least. */
  readonly commitDelayMs: number;
}

/** Pages in the log that are worth a checkpoint when there is nothing else to do, and in any case. */
const checkpointIdlePages = 1_000;
const checkpointBusyPages = 8_000;

const port = parentPort;
if (!port) throw new Error('This file runs as a worker thread');
const options = workerData as WriterOptions;

const say = (message: FromWriter) => port.postMessage(message);

const db = openSqliteFile(options.file);
configureSqlite(db);
// The log is checkpointed below, after a group has been answered, not inside somebody's commit.
db.pragma('wal_autocheckpoint = 0');
const logSize = db.prepare<[], { log: number; checkpointed: number }>('pragma wal_checkpoint(noop)');
const checkpoint = db.prepare('pragma wal_checkpoint(passive)');

const sleeper = new Int32Array(new SharedArrayBuffer(4));
const groups = new UnitGroups(
  db,
  options.commitDelayMs > 0 ? () => void Atomics.wait(sleeper, 0, 0, options.commitDelayMs) : undefined,
);

/** Units that were received and not run yet; a plain array with a moving head, since it is emptied from the front. */
let queue: WireUnit[] = [];
let head = 0;
let closing = false;

function accept(message: ToWriter): void {
  if (message.kind === 'close') {
    closing = true;
    return;
  }
  for (const [id, sql] of message.queries) groups.define(id, sql);
  if (head === queue.length) {
    queue = [];
    head = 0;
  }
  for (const unit of message.units) queue.push(unit);
}

/** Takes in what has been sent since, without going back to the event loop. */
function receive(): void {
  for (let received = receiveMessageOnPort(port!); received; received = receiveMessageOnPort(port!))
    accept(received.message as ToWriter);
}

function checkpointIfWorthIt(idle: boolean): void {
  const state = logSize.get();
  if (!state) return;
  const pages = state.log - state.checkpointed;
  if (pages >= (idle ? checkpointIdlePages : checkpointBusyPages)) checkpoint.get();
}

function work(): void {
  try {
    for (receive(); head < queue.length; receive()) {
      const begun = performance.now();
      const deadline = begun + options.maxGroupMs;
      let taken = 0;
      const { answers, commits } = groups.run(() => {
        if (taken >= options.maxGroupUnits || (taken > 0 && performance.now() > deadline)) return undefined;
        if (head === queue.length) receive();
        if (head === queue.length) return undefined;
        taken++;
        return queue[head++];
      });
      say({ kind: 'answers', answers, commits, ms: performance.now() - begun });
      try {
        checkpointIfWorthIt(head === queue.length);
      } catch {
        // The log keeps everything and the next checkpoint tries again; a full disk is told to those who write.
      }
    }
    if (closing) {
      // Closing the last connection folds the log into the database file.
      db.close();
      say({ kind: 'closed' });
      port!.close();
    }
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    say({ kind: 'fatal', message: error instanceof LostSync ? message : `The database writer failed: ${message}` });
    port!.close();
  }
}

port.on('message', (message: ToWriter) => {
  accept(message);
  work();
});
say({ kind: 'ready' });
