import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import type { OperationMessage } from '@muster/protocol/wire';
import { createEngine } from '../../agent/src/converge/engine.ts';
import { directory, file, operation } from '../../agent/src/converge/test/desired.ts';
import { systemClock } from '../../agent/src/host/clock.ts';

/**
 * 200 files of 1 KiB and 20 directories, from the agent's receipt to its last durable result: first run and no-op,
 * the median of several, in this process.
 */

const rounds = 5;
const silent = () => {};

async function round(): Promise<{ first: number; again: number; entries: number }> {
  const home = mkdtempSync(`${tmpdir()}/muster-bench-`);
  try {
    const root = `${home}/root`;
    mkdirSync(root);
    let arrived = silent;
    const engine = createEngine({
      dataDir: `${home}/data`,
      clock: systemClock,
      log: { debug: silent, info: silent, warn: silent, error: (fields, message) => console.error(message, fields) },
      onReports: () => arrived(),
    });
    await engine.start();
    const desired = () => [
      ...Array.from({ length: 20 }, (_, i) => directory(`${root}/d${i}`, { mode: '0755' })),
      ...Array.from({ length: 200 }, (_, i) =>
        file(`${root}/d${i % 20}/f${i}`, { content: `${i}`.padEnd(1023, 'x').concat('\n'), mode: '0644' }),
      ),
    ];
    const timed = async (message: OperationMessage): Promise<number> => {
      const started = performance.now();
      const ended = new Promise<number>((resolve, reject) => {
        arrived = () => {
          for (const { reports } of engine.spool.pending(0))
            for (const report of reports)
              if (report.type === 'finished' && report.operation_id === message.operation_id) {
                if (report.status !== 'succeeded') reject(new Error(report.error ?? report.status));
                resolve(performance.now() - started);
              }
        };
      });
      await engine.accept(message);
      const took = await ended;
      engine.spool.acknowledge(engine.spool.lastSeq());
      return took;
    };
    const first = await timed(operation('apply', desired()));
    const entries = engine.spool.lastSeq();
    const again = await timed(operation('apply', desired()));
    await engine.stop();
    return { first, again, entries };
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}

const median = (values: number[]): number => values.sort((a, b) => a - b)[Math.floor(values.length / 2)] as number;

await round();
const measured = [];
for (let i = 0; i < rounds; i++) measured.push(await round());
console.log(`first run ${median(measured.map(({ first }) => first)).toFixed(1)} ms`);
console.log(`no-op     ${median(measured.map(({ again }) => again)).toFixed(1)} ms`);
