import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate, setTimeout as sleep } from 'node:timers/promises';
import { measureNames, type Sample } from '@muster/protocol';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Clock } from '../../../lib/src/clock.ts';
import { ManualClock } from '../../../lib/test/manual-clock.ts';
import { checkedLine } from '../host/files/checked-line.ts';
import { SampleBuffer } from './sample-buffer.ts';
import { linesOf, samplesOf } from './sample-lines.ts';
import { SavedSamples } from './saved-samples.ts';

const firstId = 'a'.repeat(32);
let nodeId: string;
const t0 = 1_800_000_000;
let clock: ManualClock;
let folder: string;
let path: string;
let logged: string[];

beforeEach(() => {
  clock = new ManualClock();
  nodeId = firstId;
  folder = mkdtempSync(join(tmpdir(), 'muster-samples-'));
  path = join(folder, 'unsent-samples.log');
  logged = [];
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const sampleAt = (collected_at: number, value: number | null = 5): Sample =>
  ({ collected_at, ...Object.fromEntries(measureNames.map((name) => [name, value])) }) as Sample;

/** Starts an agent with unsent samples and a file for them. */
function start(capacity = 2_880) {
  const buffer = new SampleBuffer(capacity);
  const say = (_: object, message: string) => void logged.push(message);
  let isAlive = true;
  const own: Clock = {
    now: () => clock.now(),
    monotonic: () => clock.monotonic(),
    after: (ms, action) => clock.after(ms, () => isAlive && action()),
  };
  const saved = new SavedSamples({ path, nodeId: () => nodeId, buffer, clock: own, log: { info() {}, warn: say } });
  saved.restore();
  const changed = async () => {
    saved.changed();
    await idle();
  };
  return {
    buffer,
    saved,
    kill() {
      isAlive = false;
    },
    /** Adds a number of samples, one every half minute. */
    async take(count: number) {
      for (let n = 0; n < count; n++) {
        clock.advance(30_000);
        buffer.push(sampleAt(Math.floor(clock.now() / 1000), n % 100));
        await changed();
      }
    },
    /** Drops all but the last samples, as if the others had been sent. */
    async send(left = 0) {
      buffer.drop(buffer.end - left);
      await changed();
    },
    get times() {
      return Array.from({ length: buffer.end - buffer.first }, (_, n) => buffer.timeOf(buffer.first + n) - t0);
    },
  };
}
type Agent = ReturnType<typeof start>;

/** Waits for pending disk operations. */
async function idle(): Promise<void> {
  await setImmediate();
  for (let quiet = 0; quiet < 2; ) {
    const busy = process.getActiveResourcesInfo().includes('FSReqCallback');
    quiet = busy ? 0 : quiet + 1;
    await (busy ? sleep(1) : setImmediate());
  }
}
const halfMinutes = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, n) => (from + n) * 30);
const lines = () => readFileSync(path, 'utf8').split('\n').length - 1;

describe('unsent samples', () => {
  test('writes no samples to disk if they are sent within ten minutes', async () => {
    const agent = start();
    for (let n = 0; n < 200; n++) {
      await agent.take(2);
      await agent.send(n % 3);
      expect(readdirSync(folder)).toEqual([]);
    }
    await agent.send();
    await agent.saved.end();
    expect(readdirSync(folder)).toEqual([]);
  });

  test('restores samples after the agent was killed, except those of the last ten minutes', async () => {
    const agent = start();
    await agent.take(19);
    expect(existsSync(path)).toBe(false);
    const sizes = new Set<number>();
    for (let taken = 20; taken < 200; taken++) {
      await agent.take(1);
      if (existsSync(path)) sizes.add(statSync(path).size);
      if (taken % 3 > 0) continue;
      const restored = start().times;
      expect(restored).toEqual(halfMinutes(1, restored.length));
      expect(taken - restored.length).toBeLessThanOrEqual(20);
    }
    expect(sizes.size).toBeLessThanOrEqual(9);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(readdirSync(folder)).toEqual(['unsent-samples.log']);
    expect(logged).toEqual([]);
  });

  test('restores samples unchanged and in order after a stop, and removes their file when they are sent', async () => {
    const first = start();
    await first.take(70);
    const newest = first.buffer.at(69);
    await first.saved.end();
    const second = start();
    expect(second.times).toEqual(halfMinutes(1, 70));
    expect(second.buffer.at(69)).toEqual(newest);
    await second.take(3);
    await second.saved.end();
    const third = start();
    expect(third.times).toEqual(halfMinutes(1, 73));
    await third.send();
    expect(readdirSync(folder)).toEqual([]);
    expect(start().times).toEqual([]);
  });

  test('restores samples after a stop even if the agent’s ID has changed', async () => {
    const first = start();
    await first.take(25);
    expect(existsSync(path)).toBe(true);
    nodeId = 'b'.repeat(32);
    await first.saved.end();
    expect(start().times).toEqual(halfMinutes(1, 25));
    expect(logged).toEqual([]);
  });

  test('saves samples on stop, except those already sent', async () => {
    const first = start();
    await first.take(70);
    await first.send(25);
    await first.saved.end();
    const second = start();
    expect(second.times).toEqual(halfMinutes(46, 70));
    // Sends some of the previous process's samples.
    await second.send(10);
    await second.saved.end();
    const third = start();
    expect(third.times).toEqual(halfMinutes(61, 70));
    await third.send();
    await third.saved.end();
    expect(readdirSync(folder)).toEqual([]);
  });

  test('limits samples on disk to twice the capacity of the buffer', async () => {
    let agent = start(50);
    let maxLines = 0;
    for (let n = 1; n <= 500; n++) {
      await agent.take(1);
      if (existsSync(path)) maxLines = Math.max(maxLines, lines());
      if (n % 170 === 0) {
        await agent.saved.end();
        agent = start(50);
        expect(agent.times).toEqual(halfMinutes(n - 49, n));
      }
    }
    expect(maxLines).toBeGreaterThan(70);
    expect(maxLines).toBeLessThanOrEqual(1 + 50 + 50 + 21);
  });

  test('restores exactly the unsent samples after any sequence of events', async () => {
    const step = fc.oneof(
      { weight: 6, arbitrary: fc.record({ take: fc.integer({ min: 1, max: 30 }) }) },
      { weight: 3, arbitrary: fc.record({ send: fc.nat(40) }) },
      { weight: 1, arbitrary: fc.constant('stop' as const) },
      { weight: 1, arbitrary: fc.constant('kill' as const) },
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
        // Each run starts without a file.
        clock = new ManualClock();
        rmSync(path, { force: true });
        let agent = start(60);
        /**
         * The time of the last sample that the orchestrator has stored. The orchestrator must store each sample once
         * and in order.
         */
        let stored = Number.NEGATIVE_INFINITY;
        for (const does of steps) {
          const before = agent.times;
          if (does === 'stop') {
            await agent.saved.end();
            agent = start(60);
            expect(agent.times).toEqual(before);
          } else if (does === 'kill') {
            agent.kill();
            agent = start(60);
            const after = agent.times;
            const [oldest = Number.POSITIVE_INFINITY] = before;
            expect(after.filter((time) => time > stored && time >= oldest)).toEqual(
              before.filter((time) => time > stored && time <= (after.at(-1) ?? Number.NEGATIVE_INFINITY)),
            );
            expect(before.length - before.filter((time) => after.includes(time)).length).toBeLessThanOrEqual(20);
          } else if ('take' in does) await agent.take(does.take);
          else {
            stored = Math.max(stored, agent.times.at(-does.send - 1) ?? Number.NEGATIVE_INFINITY);
            await agent.send(does.send);
          }
        }
      }),
      { numRuns: 60 },
    );
  });
});

describe('the file of samples', () => {
  const fill = async (count: number): Promise<Agent> => {
    const agent = start();
    await agent.take(count);
    await agent.saved.end();
    return agent;
  };

  test('restores all complete lines of a file truncated at any byte, and appends to it', async () => {
    await fill(3);
    const bytes = readFileSync(path);
    const ends = [...bytes.keys()].filter((at) => bytes[at] === 0x0a).map((at) => at + 1);
    for (let length = bytes.length; length >= 0; length--) {
      writeFileSync(path, bytes);
      truncateSync(path, length);
      const completeLines = Math.max(0, ends.filter((end) => end <= length).length - 1);
      expect(start().times).toEqual(halfMinutes(1, completeLines));
    }
    writeFileSync(path, bytes.subarray(0, -3));
    logged = [];
    const agent = start();
    expect(agent.times).toEqual(halfMinutes(1, 2));
    expect(logged).toEqual([expect.stringContaining('ignored damaged')]);
    await agent.take(2);
    await agent.saved.end();
    expect(start().times).toEqual([...halfMinutes(1, 2), ...halfMinutes(4, 5)]);
  });

  test('restores the other samples if any byte of the file has changed', async () => {
    await fill(5);
    const bytes = readFileSync(path);
    fc.assert(
      fc.property(fc.nat(bytes.length - 1), fc.nat(255), (at, to) => {
        const changed = Buffer.from(bytes);
        changed[at] = to;
        writeFileSync(path, changed);
        const { times } = start();
        const header = bytes.indexOf(0x0a);
        if (changed.equals(bytes)) expect(times).toHaveLength(5);
        else if (at > header) expect(times.length).toBeGreaterThanOrEqual(3);
        expect(halfMinutes(1, 5)).toEqual(expect.arrayContaining(times));
      }),
    );
  });

  test('ignores and replaces an invalid file, and a file from another agent', async () => {
    const foreign: [string, () => void][] = [
      ['empty', () => writeFileSync(path, '')],
      ['noise', () => writeFileSync(path, Buffer.alloc(5_000, 0x9f))],
      [
        'of another agent',
        () => writeFileSync(path, Buffer.concat(linesOf('b'.repeat(32), [sampleAt(t0)]).map(checkedLine))),
      ],
      ['of something else', () => writeFileSync(path, checkedLine(null))],
      ['too long', () => writeFileSync(path, Buffer.alloc(5 * 1024 ** 2, '\n'))],
      ['a folder', () => mkdirSync(join(path, 'x'), { recursive: true })],
      ['a pipe that nobody writes to', () => void spawnSync('mkfifo', [path])],
      ['a link', () => symlinkSync('/etc/passwd', path)],
    ];
    for (const [what, make] of foreign) {
      make();
      logged = [];
      const agent = start();
      expect(agent.times, what).toEqual([]);
      expect(logged, what).toHaveLength(1);
      await agent.take(25);
      await agent.saved.end();
      if (what === 'a folder') {
        expect(logged).toHaveLength(2);
        rmSync(path, { recursive: true });
        continue;
      }
      expect(start().times, what).toHaveLength(25);
      expect(logged, what).toHaveLength(1);
      rmSync(path);
    }
    expect(readFileSync('/etc/passwd', 'utf8')).toContain('root');
  });

  test('rewrites a file that another process removed or changed', async () => {
    const agent = start();
    await agent.take(45);
    for (const harm of [() => rmSync(path), () => writeFileSync(path, 'x'), () => truncateSync(path, 100)]) {
      harm();
      await agent.take(21);
      const restored = start().times;
      expect(restored).toEqual(halfMinutes(1, restored.length));
      expect(restored.length).toBeGreaterThan(agent.times.length - 21);
    }
  });

  test('warns once if the disk rejects the file, and writes it as soon as possible', async () => {
    const agent = start();
    // A directory with the name of the temporary file makes the write fail even for root.
    mkdirSync(join(`${path}.tmp`, 'x'), { recursive: true });
    await agent.take(300);
    expect(logged).toEqual([expect.stringContaining('keeping them in memory')]);
    expect(agent.times).toEqual(halfMinutes(1, 300));
    rmSync(`${path}.tmp`, { recursive: true });
    await agent.take(41);
    expect(start().times.length).toBeGreaterThan(300);
    expect(logged).toHaveLength(1);
  });

  test('restores the mode of the file if it was changed', async () => {
    await fill(3);
    chmodSync(path, 0o644);
    const agent = start();
    await agent.send(1);
    await agent.saved.end();
    expect(statSync(path).mode & 0o777).toBe(0o600);
  });

  test('reads known measures and skips invalid samples in a file from a different version', () => {
    const measures = ['a new one', 'uptime', 'cpu_usage'];
    const header = { node_id: nodeId, measures };
    const rows = [
      [t0, 9, 100, 12.5],
      [t0 + 1, 9, 100.5, 12.5],
      [t0 + 2, 9, 100, 101],
      [t0, 9, 100, 1],
      'x',
      null,
      [],
      [t0 + 3, 9],
    ];
    const found = samplesOf([header, ...rows], nodeId);
    expect(found).toEqual({
      samples: [{ ...sampleAt(t0, null), uptime: 100, cpu_usage: 12.5 }, sampleAt(t0 + 3, null)],
      invalid: 6,
    });
    expect(samplesOf([], nodeId)).toBeNull();
    expect(samplesOf([[]], nodeId)).toBeNull();
  });
});
