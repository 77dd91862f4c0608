import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import fc from 'fast-check';
import { afterAll, expect, test } from 'vitest';
import { ManualClock } from '../../../../lib/test/manual-clock.ts';
import { CastReplay, outputLines, readCastLine, resizeLine, unfinishedBytes } from '../cast.ts';
import { shownBytes } from './transcript-lines.ts';
import { openFileTranscripts } from './transcripts-files.ts';

const root = mkdtempSync(join(tmpdir(), 'muster-transcripts-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));
const id = '01KAGZ7Q4W8E2R5T6Y9V0P3A1S';
const never = (reason: Error) => {
  throw reason;
};
async function* each(...pieces: (string | Uint8Array)[]): AsyncGenerator<Uint8Array> {
  for (const piece of pieces) yield Buffer.from(piece as string);
}
const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');

test('writes a transcript in order, readable only by its owner, and returns its digest', async () => {
  const directory = join(root, 'kept');
  const transcripts = await openFileTranscripts(directory, new ManualClock());
  expect(statSync(directory).mode & 0o777).toBe(0o700);
  expect(await transcripts.has(id)).toBe(false);
  expect(await transcripts.raw(id)).toBeNull();
  expect(await transcripts.cast(id)).toBeNull();
  expect(await transcripts.digest(id)).toBeNull();
  const recording = await transcripts.create(id, never);
  const file = join(directory, `${id}.cast`);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  await expect(transcripts.create(id, never)).rejects.toMatchObject({ code: 'EEXIST' });
  const written: [number, string][] = [];
  for (let n = 0; n < 50; n++) {
    const line = outputLines(n, Buffer.from(`${n} `));
    // `done` is called after the write.
    recording.append(line, () => written.push([n, readFileSync(file, 'utf8').includes(line) ? 'there' : 'not there']));
  }
  expect(recording.size).toBeGreaterThan(recording.written);
  const digest = await recording.finish();
  expect(written).toEqual(Array.from({ length: 50 }, (_, n) => [n, 'there']));
  const bytes = readFileSync(file);
  expect(digest).toEqual({ sha256: sha256(bytes), bytes: bytes.length });
  expect(await transcripts.digest(id)).toEqual(digest);
  expect(transcripts.recorded).toBe(bytes.length);
  expect(await buffer((await transcripts.cast(id))!)).toEqual(bytes);
  expect(String(await buffer((await transcripts.raw(id))!))).toBe(
    Array.from({ length: 50 }, (_, n) => `${n} `).join(''),
  );
  expect(Buffer.from(await transcripts.part(id, 3, 9))).toEqual(bytes.subarray(3, 9));
  expect(await transcripts.ids({ after: '', below: 'Z', limit: 9 })).toEqual([id]);
  await transcripts.remove(id);
  expect(existsSync(file)).toBe(false);
});

test('refuses IDs that refer to a path outside the directory', async () => {
  const directory = join(root, 'inner');
  const transcripts = await openFileTranscripts(directory, new ManualClock());
  writeFileSync(join(root, `${id}.cast`), 'not theirs');
  for (const tried of [`../${id}`, `..%2f${id}`, `/${id}`, `${id}\0`, '.', '', 'x'.repeat(5000)]) {
    expect(await transcripts.has(tried), tried).toBe(false);
    expect(await transcripts.raw(tried), tried).toBeNull();
    expect(await transcripts.cast(tried), tried).toBeNull();
    await transcripts.remove(tried);
    await expect(transcripts.create(tried, never), tried).rejects.toThrow(TypeError);
  }
  expect(existsSync(join(root, `${id}.cast`))).toBe(true);
});

test('returns the length of an incomplete UTF-8 character at the end of a chunk', () => {
  for (const [bytes, count] of [
    ['', 0],
    ['61', 0],
    ['c3', 1],
    ['c3a9', 0],
    ['61e2', 1],
    ['61e282', 2],
    ['e282ac', 0],
    ['f09f98', 3],
    ['f09f9880', 0],
    ['80', 0],
    ['80808080', 0],
    ['ff', 0],
    ['c0', 0],
    ['f5', 0],
  ] as const)
    expect(unfinishedBytes(Buffer.from(bytes, 'hex')), bytes).toBe(count);
});

/** Incomplete characters are held until the next chunk, as in a recording. */
function recorded(pieces: readonly Uint8Array[]): string[] {
  let held: Uint8Array = new Uint8Array(0);
  const lines = pieces.map((piece, at) => {
    const all = Buffer.concat([held, piece]);
    const whole = all.length - unfinishedBytes(all);
    held = all.subarray(whole);
    return whole === 0 ? '' : outputLines(at, all.subarray(0, whole));
  });
  if (held.length > 0) lines.push(outputLines(pieces.length, held));
  return lines.filter((text) => text !== '');
}

const anyPieces = fc.array(
  fc.oneof(
    fc.uint8Array({ maxLength: 40 }),
    fc.string({ unit: 'grapheme', maxLength: 20 }).map((text) => new Uint8Array(Buffer.from(text))),
    fc
      .constantFrom('\uFEFF', '\0', '\x1b[1m', '\n', '\u2028', '\uFFFD')
      .map((text) => new Uint8Array(Buffer.from(text))),
  ),
);
const cuts = fc.array(fc.nat(), { minLength: 1, maxLength: 8 });
const cutAt = (bytes: Uint8Array, at: readonly number[]) => {
  const offsets = [0, ...at.map((offset) => offset % (bytes.length + 1)).sort((a, b) => a - b), bytes.length];
  return offsets.slice(1).map((end, n) => bytes.subarray(offsets[n], end));
};

test('returns any bytes unchanged from a file that players can read', async () => {
  await fc.assert(
    fc.asyncProperty(anyPieces, cuts, async (pieces, at) => {
      const all = Buffer.concat(pieces);
      const lines = recorded(cutAt(all, at));
      const file = Buffer.from(lines.join(''));
      expect(await buffer(shownBytes(each(...cutAt(file, at))))).toEqual(all);
      let text = '';
      for (const line of file.toString().split('\n').slice(0, -1)) {
        const [time, kind, data] = JSON.parse(line);
        expect([typeof time, typeof data]).toEqual(['number', 'string']);
        if (kind === 'o') text += data;
        else expect(kind).toBe('b');
      }
      // A transcript player must show the same text as a terminal.
      const exact = new TextDecoder('utf-8', { ignoreBOM: true }).decode(all);
      if (!exact.includes('\uFFFD')) expect(text).toBe(exact);
    }),
  );
});

test('joins characters that were split between chunks', () => {
  const bytes = Buffer.from('żółw 🐢 €');
  const single = [...bytes].map((byte) => Uint8Array.of(byte));
  expect(recorded(single).map((line) => JSON.parse(line)[2])).toEqual([...'żółw 🐢 €']);
});

test('returns the output in a truncated file and skips invalid lines', async () => {
  const lines = [
    '{"version":2,"width":80,"height":24}\n',
    outputLines(0, Buffer.from('one ')),
    'no json\n[]\n[1]\n[1,"o"]\n[1,"o",5]\n{"a":1}\nnull\n',
    `[2,"o","${'x'.repeat(600_000)}"]\n`,
    '[1,"b","bm90IGJlaGluZA=="]\n',
    resizeLine(3, 100, 40),
    '[3,"i","typed"]\n[3,"m","mark"]\n',
    outputLines(4, Buffer.from([0xff, 0x61])),
    '[5,"o","tail"]',
  ];
  expect((await buffer(shownBytes(each(...lines)))).toString('latin1')).toBe('one \xffa');
  const whole = outputLines(1, Buffer.from('shown')) + outputLines(2, Buffer.from([0xc3, 0x28]));
  const cut = whole.slice(0, -3);
  expect(String(await buffer(shownBytes(each(cut))))).toBe('shown');
  expect(readCastLine('[1,"r","0x5"]')).toBeNull();
  expect(readCastLine('[1,"r","99999x5"]')).toBeNull();
  const replay = new CastReplay();
  expect(replay.take(resizeLine(1, 7, 8).trim())).toEqual([{ cols: 7, rows: 8 }]);
});

test('repairs a file that a killed process left incomplete, without changing its output', async () => {
  const directory = join(root, 'repaired');
  const transcripts = await openFileTranscripts(directory, new ManualClock());
  const file = join(directory, `${id}.cast`);
  await transcripts.repair(id);
  expect(existsSync(file)).toBe(false);
  await fc.assert(
    fc.asyncProperty(anyPieces, cuts, fc.nat(), async (pieces, at, end) => {
      const whole = Buffer.from(`{"version":2}\n${recorded(cutAt(Buffer.concat(pieces), at)).join('')}`);
      const left = whole.subarray(0, end % (whole.length + 1));
      writeFileSync(file, left);
      await transcripts.repair(id);
      const repaired = readFileSync(file);
      expect(left.subarray(0, repaired.length).equals(repaired)).toBe(true);
      for (const line of repaired.toString().split('\n').slice(0, -1)) JSON.parse(line);
      expect(repaired.length === 0 || repaired.at(-1) === 0x0a).toBe(true);
      expect(await buffer(shownBytes(each(repaired)))).toEqual(await buffer(shownBytes(each(left))));
    }),
  );
  // Muster never writes a line this long.
  const malformed = `{}\n${'x'.repeat(2_000_000)}`;
  writeFileSync(file, malformed);
  await transcripts.repair(id);
  expect(readFileSync(file, 'utf8') === malformed).toBe(true);
  rmSync(file);
  // A transcript that is being written is not repaired.
  const recording = await transcripts.create(id, never);
  await new Promise<void>((done) => recording.append('{}\n[0,', done));
  await transcripts.repair(id);
  expect(readFileSync(file, 'utf8')).toBe('{}\n[0,');
  await recording.finish();
});

test('does not read a huge line in a hostile file into memory', async () => {
  const before = process.memoryUsage().arrayBuffers;
  let maxBytes = 0;
  async function* endless() {
    const piece = Buffer.alloc(64 * 1024, 'x');
    for (let n = 0; n < 2_000; n++) {
      yield piece;
      maxBytes = Math.max(maxBytes, process.memoryUsage().arrayBuffers - before);
    }
    yield Buffer.from(`\n${outputLines(1, Buffer.from('after'))}`);
  }
  expect(String(await buffer(shownBytes(endless())))).toBe('after');
  expect(maxBytes).toBeLessThan(8 * 1024 * 1024);
});
