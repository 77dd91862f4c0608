import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import type { ResourceResult } from '@muster/protocol';
import { limits, type OperationMessage, type Report } from '@muster/protocol/wire';
import { systemClock } from '../../../../lib/src/clock.ts';
import { ConvergeEngine, defaultLimits, type EngineOptions } from '../converge-engine.ts';
import type { Engine } from '../engine.ts';
import { sourceContents } from './desired.ts';

export type Finished = Extract<Report, { type: 'finished' }>;
export type Output = Extract<Report, { type: 'output' }>;

export interface Reported {
  results: ResourceResult[];
  outputs: Output[];
  finished: Finished;
}

/** An engine with its reports, as an orchestrator would receive them. */
export interface TestAgent {
  engine: Engine;
  dataDir: string;
  /**
   * Sends an operation and waits until it finishes. Its reports stay in the spool.
   * @throws Error if the agent refuses it, because the reports of too many operations are not acknowledged
   */
  run(operation: OperationMessage): Promise<Reported>;
  /** Waits until an operation that was sent earlier finishes. */
  ended(operationId: string): Promise<Reported>;
  stop(): Promise<void>;
}

/** `npm test` sets this variable to a dedicated directory, which it removes afterward. */
const memory = process.env.MUSTER_TEST_MEMORY ?? '/dev/shm';
/** Creates a directory, in memory if possible, because the tests do not need a disk. */
export const temporaryDirectory = (): string => mkdtempSync(`${existsSync(memory) ? memory : tmpdir()}/muster-test-`);
export const removeDirectory = (path: string): void => rmSync(path, { recursive: true, force: true });

const silent = () => {};

/**
 * Starts an engine.
 * @param dataDir an existing directory with mode 0700
 */
export async function startAgent(dataDir: string, options: Partial<EngineOptions> = {}): Promise<TestAgent> {
  const waiting = new Map<string, (reported: Reported) => void>();
  const check = () => {
    for (const [id, resolve] of waiting) {
      const reported = reportedOf(engine, id);
      if (reported === null) continue;
      waiting.delete(id);
      resolve(reported);
    }
  };
  const engine = new ConvergeEngine({
    dataDir,
    clock: systemClock,
    log: { debug: silent, info: silent, warn: silent, error: (fields, message) => console.error(message, fields) },
    onReports: check,
    limits: defaultLimits,
    onContentsWanted: () => setImmediate(() => answerContents(engine)),
    ...options,
  });
  await engine.start();
  const ended = (id: string) =>
    new Promise<Reported>((resolve) => {
      waiting.set(id, resolve);
      check();
    });
  return {
    engine,
    dataDir,
    ended,
    async run(operation) {
      if ((await engine.accept(operation)) === 'full') throw new Error('the agent has too many open operations');
      return ended(operation.operation_id);
    },
    stop: () => engine.stop(),
  };
}

/** Responds to content requests in frames, as an orchestrator does. */
function answerContents({ contents }: Engine): void {
  for (let part = contents.next(); part !== null; part = contents.next()) {
    const { request, sha256, from, bytes } = part;
    const content = sourceContents.get(sha256);
    if (content === undefined) contents.refused(request, 'no such content');
    else
      for (let at = 0; at < bytes; at += limits.contentFrameBytes)
        contents.received(request, content.subarray(from + at, from + Math.min(bytes, at + limits.contentFrameBytes)));
  }
}

/** Returns the reports of an operation; null until its outcome is in the spool. */
function reportedOf(engine: Engine, id: string): Reported | null {
  const results: ResourceResult[] = [];
  const outputs: Output[] = [];
  for (const { reports } of engine.spool.pending(0))
    for (const report of reports) {
      if (report.operation_id !== id) continue;
      if (report.type === 'results')
        report.results.forEach((result, i) => {
          results[report.position + i] = result;
        });
      else if (report.type === 'output') outputs.push(report);
      else if (report.type === 'finished') return { results, outputs, finished: report };
    }
  return null;
}
