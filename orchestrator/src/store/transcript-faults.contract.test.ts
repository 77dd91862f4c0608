import { execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { buffer } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, test, vi } from 'vitest';
import { ManualClock } from '../../../lib/test/manual-clock.ts';
import { missingMount } from '../../test/databases/small-file-system.ts';
import { outputLines } from './cast.ts';
import { openFileTranscripts } from './transcripts/transcripts-files.ts';

const root = mkdtempSync(join(tmpdir(), 'muster-transcript-faults-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));
const id = '01KAGZ7Q4W8E2R5T6Y9V0P3A1S';
const recorder = fileURLToPath(new URL('../../test/record-until-killed.ts', import.meta.url));

test.each([1, 400])(
  'records all output that was shown before the process was killed after %i chunks',
  async (pieces) => {
    const directory = join(root, `killed-${pieces}`);
    const child = spawn(process.execPath, [recorder, directory, id], { stdio: ['ignore', 'pipe', 'inherit'] });
    const shown: string[] = [];
    for await (const line of createInterface({ input: child.stdout })) {
      shown.push(line);
      if (shown.length === pieces) child.kill('SIGKILL');
    }
    if (child.signalCode === null) await once(child, 'exit');
    expect(child.signalCode).toBe('SIGKILL');
    const transcripts = await openFileTranscripts(directory, new ManualClock());
    const raw = await buffer((await transcripts.raw(id))!);
    const [length, sha256] = (shown.at(-1) as string).split(' ');
    expect(raw.length).toBeGreaterThanOrEqual(Number(length));
    expect(
      createHash('sha256')
        .update(raw.subarray(0, Number(length)))
        .digest('hex'),
    ).toBe(sha256);
  },
);

test('reports a full disk once, and keeps file and digest consistent with the confirmed lines', async (context) => {
  if (missingMount && process.env.CI !== 'true') context.skip(missingMount);
  const small = join(root, 'small');
  mkdirSync(small);
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', small]);
  try {
    const transcripts = await openFileTranscripts(join(small, 'terminals'), new ManualClock());
    const onFailure = vi.fn();
    const recording = await transcripts.create(id, onFailure);
    let expected = '';
    const line = outputLines(1, Buffer.from('x'.repeat(20_000)));
    for (let n = 0; n < 100; n++) {
      recording.append(line, () => {
        expected += line;
      });
      if (n % 10 === 9) await new Promise((resolve) => setTimeout(resolve, 1));
    }
    await vi.waitFor(() => expect(onFailure).toHaveBeenCalledTimes(1));
    expect(onFailure.mock.calls[0]?.[0]).toMatchObject({ code: 'ENOSPC' });
    const digest = await recording.finish();
    const file = readFileSync(join(small, 'terminals', `${id}.cast`));
    expect(file.toString() === expected).toBe(true);
    expect(expected.length).toBeGreaterThan(100_000);
    expect(digest).toEqual({ sha256: createHash('sha256').update(file).digest('hex'), bytes: file.length });
    expect(onFailure).toHaveBeenCalledTimes(1);
  } finally {
    execFileSync('umount', [small]);
  }
});

test('confirms every line that a full disk stored completely, even if lines were written together', async (context) => {
  if (missingMount && process.env.CI !== 'true') context.skip(missingMount);
  const small = join(root, 'small-together');
  mkdirSync(small);
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', small]);
  try {
    const transcripts = await openFileTranscripts(join(small, 'terminals'), new ManualClock());
    const onFailure = vi.fn();
    const recording = await transcripts.create(id, onFailure);
    let expected = '';
    const line = outputLines(1, Buffer.from('x'.repeat(20_000)));
    // All later appends wait for the first write and share the next write, which does not fit on the disk.
    for (let n = 0; n < 100; n++)
      recording.append(line, () => {
        expect(onFailure).not.toHaveBeenCalled();
        expected += line;
      });
    await vi.waitFor(() => expect(onFailure).toHaveBeenCalledTimes(1));
    const digest = await recording.finish();
    const file = readFileSync(join(small, 'terminals', `${id}.cast`));
    expect(file.toString() === expected).toBe(true);
    expect(expected.length).toBeGreaterThan(900_000);
    expect(digest).toEqual({ sha256: createHash('sha256').update(file).digest('hex'), bytes: file.length });
  } finally {
    execFileSync('umount', [small]);
  }
});

const replaced = (file: string) => {
  writeFileSync(`${file}.new`, '');
  renameSync(`${file}.new`, file);
};
test.each([
  ['removed', (file: string) => rmSync(file)],
  ['removed', (file: string) => rmSync(join(file, '..'), { recursive: true })],
  ['removed', replaced],
  ['truncated', (file: string) => truncateSync(file, 1)],
] as const)('reports a file that another program has %s within a second of new output', async (how, harm) => {
  const directory = mkdtempSync(join(root, 'harmed-'));
  const file = join(directory, `${id}.cast`);
  const clock = new ManualClock();
  const transcripts = await openFileTranscripts(directory, clock);
  const onFailure = vi.fn();
  const recording = await transcripts.create(id, onFailure);
  const shown = () => new Promise<void>((done) => recording.append(outputLines(1, Buffer.from('shown')), done));
  await shown();
  clock.advance(1000);
  await vi.waitFor(() => expect(transcripts.syncs).toBe(1));
  expect(onFailure).not.toHaveBeenCalled();
  harm(file);
  await shown();
  clock.advance(1000);
  await vi.waitFor(() => expect(onFailure).toHaveBeenCalledTimes(1));
  expect(onFailure.mock.calls[0]?.[0]).toMatchObject({ message: `the transcript file was ${how}` });
  await recording.finish();
  // Finishing does not change the rest of the file.
  if (how === 'truncated') expect(readFileSync(file, 'utf8')).toBe(`[${outputLines(1, Buffer.from('shown'))}`);
});

test('throws when the transcript cannot be created, and leaves no file', async () => {
  const directory = join(root, 'gone');
  const transcripts = await openFileTranscripts(directory, new ManualClock());
  rmSync(directory, { recursive: true });
  await expect(transcripts.create(id, () => {})).rejects.toMatchObject({ code: 'ENOENT' });
});

test('syncs all transcripts twice a second with one timer, and syncs each transcript when it is finished', async () => {
  const clock = new ManualClock();
  const transcripts = await openFileTranscripts(join(root, 'synced'), clock);
  const after = vi.spyOn(clock, 'after');
  const ids = Array.from({ length: 5 }, (_, n) => `${id.slice(0, -1)}${n}`);
  const recordings = await Promise.all(ids.map((one) => transcripts.create(one, () => {})));
  expect(transcripts.syncs).toBe(0);
  for (let round = 1; round <= 3; round++) {
    await Promise.all(recordings.map((recording) => new Promise<void>((done) => recording.append('{}\n', done))));
    // The previous round may still be syncing its last file. That round sets the timer when it finishes.
    await vi.waitFor(() => expect(after).toHaveBeenCalledTimes(round));
    expect(after.mock.calls[0]?.[0]).toBe(500);
    clock.advance(500);
    await vi.waitFor(() => expect(transcripts.syncs).toBe(5 * round));
  }
  await Promise.all(recordings.map((recording) => recording.finish()));
  expect(transcripts.syncs).toBe(20);
});
