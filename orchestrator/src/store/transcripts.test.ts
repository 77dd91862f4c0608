import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, expect, test } from 'vitest';
import { openTranscripts, type TranscriptMark } from './transcripts.ts';

const root = mkdtempSync(join(tmpdir(), 'muster-transcripts-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));
const id = '01KAGZ7Q4W8E2R5T6Y9V0P3A1S';
const all = async (marks: AsyncIterable<TranscriptMark> | null) => {
  const found: TranscriptMark[] = [];
  for await (const mark of marks ?? []) found.push(mark);
  return found;
};

test('bytes and their times are read, for ids that are ids', async () => {
  const directory = join(root, 'kept');
  const transcripts = await openTranscripts(directory);
  expect(statSync(directory).mode & 0o777).toBe(0o700);
  expect(await transcripts.has(id)).toBe(false);
  expect(await transcripts.raw(id)).toBeNull();
  expect(await transcripts.timing(id)).toBeNull();
  writeFileSync(join(directory, `${id}.raw`), 'shown');
  // Killed before a mark was written.
  expect(await all(await transcripts.timing(id))).toEqual([]);
  const lines = ['{"at":0,"cols":80,"rows":24}', 'x', '{"at":-1,"bytes":1}', `{"at":1,"bytes":2${' '.repeat(999)}}`];
  writeFileSync(join(directory, `${id}.timing`), [...lines, 'null', '{"at":3,"bytes":5}', '{"at":4,"by'].join('\n'));
  expect(await transcripts.has(id)).toBe(true);
  expect(await text((await transcripts.raw(id))!)).toBe('shown');
  expect(await all(await transcripts.timing(id))).toEqual([
    { at: 0, cols: 80, rows: 24 },
    { at: 3, bytes: 5 },
  ]);
});

test('no id leads out of the directory', async () => {
  const directory = join(root, 'inner');
  const transcripts = await openTranscripts(directory);
  writeFileSync(join(root, `${id}.raw`), 'not theirs');
  for (const tried of [`../${id}`, `..%2f${id}`, `/${id}`, `${id}\0`, '.', '', 'x'.repeat(5000)]) {
    expect(await transcripts.has(tried), tried).toBe(false);
    expect(await transcripts.raw(tried), tried).toBeNull();
    expect(await transcripts.timing(tried), tried).toBeNull();
  }
});
