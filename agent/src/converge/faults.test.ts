import { chownSync, existsSync, mkdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { systemClock } from '../../../lib/src/clock.ts';
import { replaceCall } from '../../test/replace-call.ts';
import { file, operation, script } from './test/desired.ts';
import { useAgent } from './test/harness.ts';
import { snapshotTree } from './test/tree.ts';

const h = useAgent();
const nobody = 65534;
const silent = { debug() {}, info() {}, warn() {}, error() {} };
/** The pause before an operation is tried again is not waited for. */
const clock = {
  ...systemClock,
  after: (ms: number, action: () => void) => systemClock.after(ms === 5000 ? 1 : ms, action),
};

/** The disk does not take what is to be synced next. */
function failNextSync(): void {
  const restore = replaceCall('fdatasync', (real) =>
    Object.assign(
      (_fd: number, done: (error: Error) => void) => {
        restore();
        done(Object.assign(new Error('EIO: i/o error, fdatasync'), { code: 'EIO' }));
      },
      { __promisify__: real.__promisify__ },
    ),
  );
}

describe('what goes wrong around an operation', () => {
  test.runIf(process.geteuid?.() === 0)(
    'whoever owns a directory and swaps it for a link loses the operation nothing',
    async () => {
      mkdirSync(`${h.root}/u/d`, { recursive: true });
      mkdirSync(`${h.root}/elsewhere`);
      for (const path of ['u', 'u/d']) chownSync(`${h.root}/${path}`, nobody, nobody);
      writeFileSync(`${h.root}/g`, 'before\n');
      let swapped = false;
      await h.restart({
        clock,
        log: silent,
        crashPoint(name) {
          if (swapped || name !== 'resource:after' || !existsSync(`${h.root}/u/d/f`)) return;
          swapped = true;
          renameSync(`${h.root}/u/d`, `${h.root}/u/old`);
          symlinkSync(`${h.root}/elsewhere`, `${h.root}/u/d`);
        },
      });
      const told = await h.agent.run(
        operation('apply', [file(`${h.root}/u/d/f`, { content: 'x' }), file(`${h.root}/g`, { content: 'ours\n' })]),
      );
      expect(swapped).toBe(true);
      expect(told.finished).toMatchObject({ status: 'succeeded', summary: { total: 2, changed: 2 } });
      const removed = await h.agent.run(operation('apply', []));
      expect(removed.finished.summary).toMatchObject({ total: 2, removed: 1, failed: 1 });
      expect(readFileSync(`${h.root}/g`, 'utf8')).toBe('before\n');
    },
  );

  test.runIf(process.geteuid?.() === 0)(
    'what was changed half way comes back, also when nobody could look how far it got',
    async () => {
      const path = `${h.root}/f`;
      writeFileSync(path, 'theirs\n', { mode: 0o604 });
      const before = snapshotTree(h.root);
      const desired = [file(path, { owner: 'nobody', mode: '0640' })];
      const broken = Object.assign(new Error('EIO: i/o error'), { code: 'EIO' });
      const restore = [
        replaceCall('fchmodSync', () => () => {
          // From here on the disk answers nothing.
          restore.push(
            replaceCall('lstatSync', (real) =>
              Object.assign(() => {
                throw broken;
              }, real),
            ),
          );
          throw broken;
        }),
      ];
      const failed = await h.agent.run(operation('apply', desired));
      for (const one of restore.toReversed()) one();
      expect(failed.results).toMatchObject([{ status: 'failed' }]);
      expect(snapshotTree(h.root)).not.toEqual(before);
      await h.agent.run(operation('apply', desired));
      await h.agent.run(operation('apply', []));
      expect(snapshotTree(h.root)).toEqual(before);
    },
  );

  test('an operation that is given up stays in charge of what it changed, and triggers stay due', async () => {
    writeFileSync(`${h.root}/a`, 'before\n');
    let faults = 0;
    await h.restart({
      clock,
      log: silent,
      crashPoint(name) {
        if (name !== 'resource:after' || faults === 3) return;
        faults++;
        throw new Error('a fault of the agent itself');
      },
    });
    const desired = [
      file(`${h.root}/a`, { content: 'ours\n' }, { id: 'a' }),
      file(`${h.root}/b`, { content: 'ours\n' }, { id: 'b' }),
      script('s', { apply: `echo x >> ${h.root}/count`, check: 'true' }, { rerun_on: [`path:${h.root}/a`] }),
    ];
    const told = await h.agent.run(operation('apply', desired));
    expect(told.finished).toMatchObject({ status: 'failed', error: expect.stringContaining('a fault of the agent') });
    expect(readFileSync(`${h.root}/a`, 'utf8')).toBe('ours\n');
    await h.restart();
    const planned = await h.agent.run(operation('plan', desired));
    expect(planned.results.at(-1)).toMatchObject({ action: 'run', triggered_by: ['a'] });
    await h.agent.run(operation('apply', []));
    expect(readFileSync(`${h.root}/a`, 'utf8')).toBe('before\n');
    expect(existsSync(`${h.root}/b`)).toBe(false);
  });

  test.each(['step:after', 'step:ended', 'results:before'])(
    'what ran without a restart is told as it ended, also when the agent met a fault at %s',
    async (at) => {
      let faults = 0;
      await h.restart({
        clock,
        log: silent,
        crashPoint(name) {
          if (name !== at || (name === 'results:before' && !existsSync(`${h.root}/count`)) || faults === 1) return;
          faults++;
          throw new Error('a fault of the agent itself');
        },
      });
      const desired = [
        script('s', { apply: `echo x >> ${h.root}/count; echo said`, undo: `rm ${h.root}/count` }),
        file(`${h.root}/f`),
      ];
      const told = await h.agent.run(operation('apply', desired));
      expect(faults).toBe(1);
      expect(told.results).toMatchObject([{ status: 'changed' }, { status: 'changed' }]);
      expect(told.results[0]?.message).not.toContain('in the middle');
      expect(told.outputs).toMatchObject([{ stdout: 'said\n' }]);
      expect(readFileSync(`${h.root}/count`, 'utf8')).toBe('x\n');
      await h.agent.run(operation('apply', []));
      expect(existsSync(`${h.root}/count`)).toBe(false);
    },
  );

  test('what is carried on by the same process is not said to come after a restart', async () => {
    let faults = 0;
    await h.restart({
      clock,
      log: silent,
      crashPoint(name) {
        if (name !== 'resource:before' || faults === 1) return;
        faults++;
        throw new Error('a fault of the agent itself');
      },
    });
    const told = await h.agent.run(operation('apply', [file(`${h.root}/f`)]));
    expect(told.results).toMatchObject([{ message: 'carried on after the agent met a fault of its own' }]);
  });

  test('a fault while files are on their way: none of them goes on beside the next attempt', async () => {
    let [passed, faults] = [0, 0];
    await h.restart({
      clock,
      log: silent,
      crashPoint(name) {
        if (name !== 'resource:before' || ++passed !== 2 || faults === 1) return;
        faults++;
        throw new Error('a fault of the agent itself');
      },
    });
    const slow = `echo x >> ${h.root}/validated; sleep 0.2; test -s %`;
    const told = await h.agent.run(
      operation('apply', [file(`${h.root}/slow`, { content: 'slow', validate: slow }), file(`${h.root}/other`)]),
    );
    expect(faults).toBe(1);
    expect(told.results.map(({ status, message }) => [status, message])).toEqual([
      ['changed', 'carried out before the agent met a fault of its own'],
      ['changed', 'carried on after the agent met a fault of its own'],
    ]);
    expect(readFileSync(`${h.root}/slow`, 'utf8')).toBe('slow');
    expect(readFileSync(`${h.root}/validated`, 'utf8')).toBe('x\n');
  });

  test('a disk that fails while an operation is taken: the agent comes out of it by itself', async () => {
    await h.restart({ clock, log: silent });
    const { engine } = h.agent;
    const first = operation('apply', [file(`${h.root}/first`)]);
    failNextSync();
    await expect(engine.accept(first)).rejects.toThrow(/sync the journal/);
    // It was written, so it may outlive the agent: it is carried out, once that is sure, and known when it is sent again.
    expect((await h.agent.ended(first.operation_id)).finished.status).toBe('succeeded');
    expect(await engine.accept(first)).toBe('known');
    const second = operation('apply', [file(`${h.root}/first`), file(`${h.root}/second`)]);
    expect((await h.agent.run(second)).finished).toMatchObject({ status: 'succeeded', summary: { unchanged: 1 } });
    await h.restart();
    expect(h.agent.engine.openOperations().map(({ state }) => state)).toEqual(['finished', 'finished']);
  });

  test('a disk that failed while nothing ran: the next operation is taken', async () => {
    await h.restart({ clock, log: silent });
    const { engine } = h.agent;
    const restoreWrite = replaceCall('writeSync', () => () => {
      restoreWrite();
      throw Object.assign(new Error('EIO: i/o error, write'), { code: 'EIO' });
    });
    const restoreTruncate = replaceCall('ftruncateSync', () => () => {
      restoreTruncate();
      throw Object.assign(new Error('EIO: i/o error, ftruncate'), { code: 'EIO' });
    });
    const taken = operation('apply', [file(`${h.root}/f`)]);
    await expect(engine.accept(taken)).rejects.toThrow(/write the journal/);
    expect(engine.openOperations()).toEqual([]);
    expect((await h.agent.run(taken)).finished.status).toBe('succeeded');
    await h.restart();
    expect(h.agent.engine.openOperations().map(({ state }) => state)).toEqual(['finished']);
  });

  test.each(['intents', 'results', 'finished'])(
    'a disk that fails once, at %s: the operation ends, and that is told',
    async (at) => {
      let failed = 0;
      await h.restart({
        clock,
        log: silent,
        crashPoint(name) {
          if (name === `${at}:after` && failed++ === 0) failNextSync();
        },
      });
      const told = await h.agent.run(
        operation('apply', [file(`${h.root}/f`), script('s', { apply: `echo x >> ${h.root}/count` })]),
      );
      expect(failed).toBeGreaterThan(0);
      expect(told.results.map(({ status }) => status)).toEqual(['changed', 'changed']);
      expect(readFileSync(`${h.root}/count`, 'utf8')).toBe('x\n');
      expect((await h.agent.run(operation('plan', []))).finished.status).toBe('succeeded');
      await h.restart();
      expect(h.agent.engine.openOperations().map(({ state }) => state)).toEqual(['finished', 'finished']);
    },
  );
});
