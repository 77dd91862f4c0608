import { chownSync, existsSync, mkdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { systemClock } from '../../../lib/src/clock.ts';
import { replaceCall } from '../../test/replace-call.ts';
import { file, operation, script } from './test/desired.ts';
import { useAgent } from './test/harness.ts';
import { snapshotTree } from './test/tree.ts';

const h = useAgent();
const nobodyUid = 65534;
const silent = { debug() {}, info() {}, warn() {}, error() {} };
/** Makes the wait before a retry return immediately. */
const clock = {
  ...systemClock,
  after: (ms: number, action: () => void) => systemClock.after(ms === 5000 ? 1 : ms, action),
};

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

describe('an operation with faults', () => {
  test.runIf(process.geteuid?.() === 0)(
    'finishes an operation even if a directory is replaced with a symbolic link',
    async () => {
      mkdirSync(`${h.root}/u/d`, { recursive: true });
      mkdirSync(`${h.root}/elsewhere`);
      for (const path of ['u', 'u/d']) chownSync(`${h.root}/${path}`, nobodyUid, nobodyUid);
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
      const outcome = await h.agent.run(
        operation('apply', [file(`${h.root}/u/d/f`, { content: 'x' }), file(`${h.root}/g`, { content: 'ours\n' })]),
      );
      expect(swapped).toBe(true);
      expect(outcome.finished).toMatchObject({ status: 'succeeded', summary: { total: 2, changed: 2 } });
      const removed = await h.agent.run(operation('apply', []));
      expect(removed.finished.summary).toMatchObject({ total: 2, removed: 1, failed: 1 });
      expect(readFileSync(`${h.root}/g`, 'utf8')).toBe('before\n');
    },
  );

  test.runIf(process.geteuid?.() === 0)(
    'restores a partial change even if its extent could not be observed',
    async () => {
      const path = `${h.root}/f`;
      writeFileSync(path, 'theirs\n', { mode: 0o604 });
      const before = snapshotTree(h.root);
      const desired = [file(path, { owner: 'nobody', mode: '0640' })];
      const broken = Object.assign(new Error('EIO: i/o error'), { code: 'EIO' });
      const restore = [
        replaceCall('fchmodSync', () => () => {
          // From here on, disk operations fail.
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

  test('manages the changes of an abandoned operation, and keeps its due triggers', async () => {
    writeFileSync(`${h.root}/a`, 'before\n');
    let faults = 0;
    await h.restart({
      clock,
      log: silent,
      crashPoint(name) {
        if (name !== 'resource:after' || faults === 3) return;
        faults++;
        throw new Error('a bug of the agent itself');
      },
    });
    const desired = [
      file(`${h.root}/a`, { content: 'ours\n' }, { id: 'a' }),
      file(`${h.root}/b`, { content: 'ours\n' }, { id: 'b' }),
      script('s', { apply: `echo x >> ${h.root}/count`, check: 'true' }, { rerun_on: [`path:${h.root}/a`] }),
    ];
    const outcome = await h.agent.run(operation('apply', desired));
    expect(outcome.finished).toMatchObject({
      status: 'failed',
      error: expect.stringContaining('a bug of the agent'),
    });
    expect(readFileSync(`${h.root}/a`, 'utf8')).toBe('ours\n');
    await h.restart();
    const planned = await h.agent.run(operation('plan', desired));
    expect(planned.results.at(-1)).toMatchObject({ action: 'run', triggered_by: ['a'] });
    await h.agent.run(operation('apply', []));
    expect(readFileSync(`${h.root}/a`, 'utf8')).toBe('before\n');
    expect(existsSync(`${h.root}/b`)).toBe(false);
  });

  test.each(['step:after', 'step:ended', 'results:before'])(
    'reports a script that has exited, and does not rerun it, after a bug at %s',
    async (at) => {
      let faults = 0;
      await h.restart({
        clock,
        log: silent,
        crashPoint(name) {
          if (name !== at || (name === 'results:before' && !existsSync(`${h.root}/count`)) || faults === 1) return;
          faults++;
          throw new Error('a bug of the agent itself');
        },
      });
      const desired = [
        script('s', { apply: `echo x >> ${h.root}/count; echo said`, undo: `rm ${h.root}/count` }),
        file(`${h.root}/f`),
      ];
      const outcome = await h.agent.run(operation('apply', desired));
      expect(faults).toBe(1);
      expect(outcome.results).toMatchObject([{ status: 'changed' }, { status: 'changed' }]);
      expect(outcome.results[0]?.message).not.toContain('while it ran');
      expect(outcome.outputs).toMatchObject([{ stdout: 'said\n' }]);
      expect(readFileSync(`${h.root}/count`, 'utf8')).toBe('x\n');
      await h.agent.run(operation('apply', []));
      expect(existsSync(`${h.root}/count`)).toBe(false);
    },
  );

  test('reports an internal error instead of a restart if the same process resumes the operation', async () => {
    let faults = 0;
    await h.restart({
      clock,
      log: silent,
      crashPoint(name) {
        if (name !== 'resource:before' || faults === 1) return;
        faults++;
        throw new Error('a bug of the agent itself');
      },
    });
    const outcome = await h.agent.run(operation('apply', [file(`${h.root}/f`)]));
    expect(outcome.results).toMatchObject([{ message: 'resumed after the agent had an internal error' }]);
  });

  test('waits for pending file writes before it retries after a fault', async () => {
    let [passed, faults] = [0, 0];
    await h.restart({
      clock,
      log: silent,
      crashPoint(name) {
        if (name !== 'resource:before' || ++passed !== 2 || faults === 1) return;
        faults++;
        throw new Error('a bug of the agent itself');
      },
    });
    const slow = `echo x >> ${h.root}/validated; sleep 0.2; test -s %`;
    const outcome = await h.agent.run(
      operation('apply', [file(`${h.root}/slow`, { content: 'slow', validate: slow }), file(`${h.root}/other`)]),
    );
    expect(faults).toBe(1);
    expect(outcome.results.map(({ status, message }) => [status, message])).toEqual([
      ['changed', 'applied before the agent had an internal error'],
      ['changed', 'resumed after the agent had an internal error'],
    ]);
    expect(readFileSync(`${h.root}/slow`, 'utf8')).toBe('slow');
    expect(readFileSync(`${h.root}/validated`, 'utf8')).toBe('x\n');
  });

  test('executes an operation later if the disk fails while the operation is accepted', async () => {
    await h.restart({ clock, log: silent });
    const { engine } = h.agent;
    const first = operation('apply', [file(`${h.root}/first`)]);
    failNextSync();
    await expect(engine.accept(first)).rejects.toThrow(/sync the journal/);
    // The record may survive a restart. The operation is executed once the record is synced, and counts as known if it
    // is sent again.
    expect((await h.agent.ended(first.operation_id)).finished.status).toBe('succeeded');
    expect(await engine.accept(first)).toBe('known');
    const second = operation('apply', [file(`${h.root}/first`), file(`${h.root}/second`)]);
    expect((await h.agent.run(second)).finished).toMatchObject({ status: 'succeeded', summary: { unchanged: 1 } });
    await h.restart();
    expect(h.agent.engine.openOperations().map(({ state }) => state)).toEqual(['finished', 'finished']);
  });

  test('accepts an operation after the disk failed while the agent was idle', async () => {
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
    'finishes and reports an operation when the disk fails once at %s',
    async (at) => {
      let failed = 0;
      await h.restart({
        clock,
        log: silent,
        crashPoint(name) {
          if (name === `${at}:after` && failed++ === 0) failNextSync();
        },
      });
      const outcome = await h.agent.run(
        operation('apply', [file(`${h.root}/f`), script('s', { apply: `echo x >> ${h.root}/count` })]),
      );
      expect(failed).toBeGreaterThan(0);
      expect(outcome.results.map(({ status }) => status)).toEqual(['changed', 'changed']);
      expect(readFileSync(`${h.root}/count`, 'utf8')).toBe('x\n');
      expect((await h.agent.run(operation('plan', []))).finished.status).toBe('succeeded');
      await h.restart();
      expect(h.agent.engine.openOperations().map(({ state }) => state)).toEqual(['finished', 'finished']);
    },
  );
});
