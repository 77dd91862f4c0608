import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import { errorMessage } from '../../../../lib/src/error-message.ts';
import { configureSqlite, openSqliteFile } from './sqlite-connection.ts';
import { LostSync, UnitGroups } from './sqlite-group.ts';
import { type FromWriter, flatAnswers, type ToWriter, unitsIn, type WireUnit } from './sqlite-message.ts';

/**
 * The thread with the only writing connection. Commits all queued writes together, and returns their results after the
 * commit. Writes that arrive during a commit form the next group, so a slow disk leads to larger groups.
 */

export interface WriterOptions {
  readonly file: string;
  /** Maximum number of writes per commit, and maximum number of milliseconds to collect them. */
  readonly maxGroupUnits: number;
  readonly maxGroupMs: number;
  /** Minimum duration of a commit in milliseconds. For tests and benchmarks. */
  readonly commitDelayMs: number;
}

/** Minimum number of pages in the write-ahead log for a checkpoint, when the writer is idle and when it is busy. */
const checkpointIdlePages = 1_000;
const checkpointBusyPages = 8_000;

const port = parentPort;
if (!port) throw new Error('This file must run as a worker thread');
const options = workerData as WriterOptions;

const say = (message: FromWriter) => port.postMessage(message);

const db = openSqliteFile(options.file);
configureSqlite(db);
// Runs checkpoints after a group's results have been sent, not within a commit.
db.pragma('wal_autocheckpoint = 0');
const logSize = db.prepare<[], { log: number; checkpointed: number }>('pragma wal_checkpoint(noop)');
const checkpoint = db.prepare('pragma wal_checkpoint(passive)');

const sleeper = new Int32Array(new SharedArrayBuffer(4));
const groups = new UnitGroups(
  db,
  options.commitDelayMs > 0 ? () => void Atomics.wait(sleeper, 0, 0, options.commitDelayMs) : undefined,
);

/** Received writes. Writes before `head` have already been processed. */
let queue: WireUnit[] = [];
let head = 0;
let closing = false;

function accept(message: ToWriter): void {
  if (message.kind === 'close') {
    closing = true;
    return;
  }
  if (message.kind === 'look') {
    if (groups.hasOutsideChange()) say({ kind: 'outside' });
    return;
  }
  for (const [id, sql] of message.queries) groups.define(id, sql);
  if (head === queue.length) {
    queue = [];
    head = 0;
  }
  for (const unit of unitsIn(message.units)) queue.push(unit);
}

/** Receives pending messages without waiting for the event loop. */
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
      const startedAt = performance.now();
      const deadline = startedAt + options.maxGroupMs;
      let taken = 0;
      const { answers, commits, outside } = groups.run(() => {
        if (taken >= options.maxGroupUnits || (taken > 0 && performance.now() > deadline)) return undefined;
        if (head === queue.length) receive();
        if (head === queue.length) return undefined;
        taken++;
        return queue[head++];
      });
      say({ kind: 'answers', answers: flatAnswers(answers), commits, outside, ms: performance.now() - startedAt });
      try {
        checkpointIfWorthIt(head === queue.length);
      } catch {
        // The write-ahead log contains all data. The next checkpoint retries, and writes report a full disk.
      }
    }
    if (closing) {
      // Closing the last connection checkpoints the log.
      db.close();
      say({ kind: 'closed' });
      port!.close();
    }
  } catch (error) {
    const message = errorMessage(error);
    say({ kind: 'fatal', message: error instanceof LostSync ? message : `The database writer failed: ${message}` });
    port!.close();
  }
}

port.on('message', (message: ToWriter) => {
  accept(message);
  work();
});
say({ kind: 'ready' });
