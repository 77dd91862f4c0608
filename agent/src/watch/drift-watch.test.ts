import { chmodSync, mkdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { agentMessageSchema, limits } from '@muster/protocol/wire';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../../lib/src/clock.ts';
import { ManualClock } from '../../../lib/test/manual-clock.ts';
import { removeDirectory, startAgent, type TestAgent, temporaryDirectory } from '../converge/test/agent.ts';
import { file, operation, script } from '../converge/test/desired.ts';
import { DriftWatch, waitAfter } from './drift-watch.ts';

const silent = () => {};
const log = {
  debug: silent,
  info: silent,
  warn: silent,
  error: (fields: object, text: string) => console.error(text, fields),
};

describe('the drift watch', () => {
  let home: string;
  let root: string;
  let agent: TestAgent;
  let watch: DriftWatch;
  let hints: string[][];
  let isUp: boolean;
  let unsent = 0;
  const start = async () => {
    agent = await startAgent(`${home}/data`, {
      onEnded: (succeeded) => watch.operationEnded(succeeded),
      onMeasured: (fingerprints) => watch.measured(fingerprints),
    });
    watch = new DriftWatch({
      engine: agent.engine,
      clock: systemClock,
      log,
      hint: (keys) => {
        if (isUp) hints.push(keys);
        else unsent++;
        return isUp;
      },
    });
    watch.start();
  };
  const stop = async () => {
    watch.end();
    await agent.stop();
  };
  beforeEach(async () => {
    home = temporaryDirectory();
    root = `${home}/root`;
    mkdirSync(root);
    mkdirSync(`${home}/data`, { mode: 0o700 });
    hints = [];
    isUp = true;
    await start();
  });
  afterEach(async () => {
    await stop();
    removeDirectory(home);
  });
  const desired = (content = 'as applied\n') => [
    file(`${root}/f`, { content, mode: '0644' }),
    file(`${root}/g`, { content }),
  ];
  const apply = (...more: Parameters<typeof operation>) => agent.run(operation(...more));
  /**
   * Waits until hints have named all these files. A removal changes them one after another, so it may cause several
   * hints.
   */
  const hinted = async (...names: string[]) => {
    const keys = new Set<string>();
    const keysSoFar = () => {
      for (const key of hints.splice(0).flat()) keys.add(key);
      return [...keys].sort();
    };
    await expect.poll(keysSoFar, { interval: 10 }).toEqual(names.map((name) => `path:${root}/${name}`));
  };
  /** Waits long enough for the agent to detect a change. An unexpected hint fails the test. */
  const nothingHinted = async () => {
    await new Promise((resolve) => setTimeout(resolve, 250));
    expect(hints).toEqual([]);
  };
  const drift = () => apply('drift');

  test('sends a hint after a manual change, and another one after the change is undone', async () => {
    await apply('apply', desired());
    writeFileSync(`${root}/f`, 'by hand\n');
    await hinted('f');
    expect((await drift()).results.map(({ changes }) => changes[0]?.field)).toEqual(['content']);
    // This state was already reported to the orchestrator.
    utimesSync(`${root}/f`, 1, 1);
    await nothingHinted();
    chmodSync(`${root}/g`, 0o600);
    chmodSync(`${root}/g`, 0o644);
    writeFileSync(`${root}/f`, 'as applied\n');
    await hinted('f');
    expect((await drift()).results).toEqual([]);
    rmSync(root, { recursive: true });
    await hinted('f', 'g');
  });

  test('sends one hint for any number of changes before a check', async () => {
    await apply('apply', desired());
    writeFileSync(`${root}/f`, 'by hand\n');
    await hinted('f');
    utimesSync(`${root}/f`, 1, 1);
    await nothingHinted();
    writeFileSync(`${root}/f`, 'by another hand\n');
    await hinted('f');
  });

  test('sends no hint after an apply, or after a change that leaves the applied state intact', async () => {
    await apply('apply', desired());
    utimesSync(`${root}/f`, 1, 1);
    writeFileSync(`${root}/f`, 'as applied\n');
    await apply('apply', desired('another\n'));
    expect(readFileSync(`${root}/f`, 'utf8')).toBe('another\n');
    await nothingHinted();
    writeFileSync(`${root}/f`, 'by hand\n');
    await hinted('f');
    await drift();
    // The apply repairs the file, and its results report this to the orchestrator.
    await apply('apply', desired('another\n'));
    await nothingHinted();
  });

  test('detects manual changes during an apply', async () => {
    await apply('apply', desired());
    const late = script('late', { apply: `echo by hand > ${root}/f` });
    await apply('apply', [...desired(), late]);
    await hinted('f');
  });

  test('detects manual changes made while the agent was stopped', async () => {
    await apply('apply', desired());
    await stop();
    writeFileSync(`${root}/g`, 'by hand\n');
    await start();
    await expect.poll(() => hints.flat()).toEqual([`path:${root}/g`]);
  });

  test('repeats hints on each new link until a drift check has found the change', async () => {
    await apply('apply', desired());
    isUp = false;
    writeFileSync(`${root}/f`, 'by hand\n');
    await expect.poll(() => unsent).toBe(1);
    isUp = true;
    watch.linked();
    watch.linked();
    expect(hints.splice(0).length).toBe(2);
    await drift();
    // The orchestrator receives the event for a check before this test sees that the check has finished.
    await expect
      .poll(() => {
        hints = [];
        watch.linked();
        return hints;
      })
      .toEqual([]);
  });
});

describe('a hint', () => {
  test('truncates long keys, so that the orchestrator accepts the hint', async () => {
    const home = temporaryDirectory();
    const clock = new ManualClock();
    const hints: string[][] = [];
    // A key contains the declared line, which may have any length.
    const watched = Array.from({ length: 20 }, (_, i) => {
      writeFileSync(`${home}/${i}`, '');
      return [`line-unix:/${i}#${'\u0001😀'.repeat(3000)}`, [`${home}/${i}`]] as const;
    });
    const watch = new DriftWatch({
      engine: {
        applied: () => ({ applies: 1, watched: new Map(watched) }),
        observe: async (keys) => new Map([...keys].map((key) => [key, 'changed'])),
      },
      clock,
      log,
      hint: (keys) => hints.push(keys) > 0,
    });
    try {
      watch.start();
      clock.advance(2000);
      await expect.poll(() => hints.length).toBe(1);
      const [keys] = hints;
      expect(keys?.length).toBe(16);
      expect(keys?.every((key, i) => key.startsWith(`line-unix:/${i}#`))).toBe(true);
      const message = JSON.stringify({ type: 'drift_hint', keys });
      expect(agentMessageSchema.safeParse(JSON.parse(message)).error).toBeUndefined();
      expect(Buffer.byteLength(message)).toBeLessThan(limits.agentFrameBytes);
    } finally {
      watch.end();
      removeDirectory(home);
    }
  });
});

describe('a path that changes all the time', () => {
  test('observes a constantly changing path at increasing intervals', async () => {
    expect([0, 9, 10, 11, 13, 30].map(waitAfter)).toEqual([0, 0, 1000, 2000, 8000, 300_000]);
    const home = temporaryDirectory();
    const clock = new ManualClock();
    let observations = 0;
    const hints: string[][] = [];
    const path = `${home}/f`;
    writeFileSync(path, '');
    const watch = new DriftWatch({
      engine: {
        applied: () => ({ applies: 1, watched: new Map([['path:/f', [path]]]) }),
        // The state differs on each observation.
        observe: async (keys) => new Map([...keys].map((key) => [key, `${++observations}`])),
      },
      clock,
      log,
      hint: (keys) => hints.push(keys) > 0,
    });
    try {
      watch.start();
      clock.advance(2000);
      await expect.poll(() => observations).toBe(1);
      for (let i = 0; i < 600; i++) {
        writeFileSync(path, `${i}`);
        // Lets the event loop deliver the kernel's events, and advances the manual clock by a tenth of a second.
        await new Promise((resolve) => setTimeout(resolve, 1));
        clock.advance(100);
      }
      const maxObservations = observations;
      expect(maxObservations).toBeGreaterThan(10);
      expect(maxObservations).toBeLessThan(18);
      await expect.poll(() => hints.length).toBe(maxObservations);
      clock.advance(600_000);
      await new Promise((resolve) => setTimeout(resolve, 5));
      const before = observations;
      clock.advance(300_000);
      writeFileSync(path, 'at last');
      await expect
        .poll(() => {
          clock.advance(100);
          return observations;
        })
        .toBe(before + 1);
    } finally {
      watch.end();
      removeDirectory(home);
    }
  });
});
