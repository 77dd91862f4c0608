import {
  appendFileSync,
  fstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import fc from 'fast-check';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { replaceCall } from '../../test/replace-call.ts';
import { JournalLog } from './log.ts';

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(`${tmpdir()}/muster-log-`);
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

function reopen(): { log: JournalLog; lines: unknown[]; damage: string[] } {
  const lines: unknown[] = [];
  const damage: string[] = [];
  const log = JournalLog.open(
    directory,
    (line) => lines.push(line),
    (detail) => damage.push(detail),
  );
  return { log, lines, damage };
}
const only = (): string => `${directory}/${readdirSync(directory).find((name) => name.endsWith('.log'))}`;

test('reads appended lines in order', async () => {
  const { log } = reopen();
  for (let i = 0; i < 5; i++) log.append({ i, text: 'zwölf\n' });
  await Promise.all([log.sync(), log.sync()]);
  await log.close();
  const again = reopen();
  expect(again.lines).toEqual([0, 1, 2, 3, 4].map((i) => ({ i, text: 'zwölf\n' })));
  await again.log.close();
});

test('reads all complete lines of a file truncated at any byte, and appends new lines after them', async () => {
  const { log } = reopen();
  for (let i = 0; i < 3; i++) log.append({ i });
  await log.close();
  const content = readFileSync(only());
  const ends = [...content].flatMap((byte, i) => (byte === 10 ? [i + 1] : []));
  await fc.assert(
    fc.asyncProperty(fc.nat(content.length), async (cut) => {
      writeFileSync(only(), content);
      truncateSync(only(), cut);
      const torn = reopen();
      expect(torn.lines.length).toBe(ends.filter((end) => end <= cut).length);
      expect(torn.damage).toEqual([]);
      torn.log.append({ after: true });
      await torn.log.close();
      const again = reopen();
      expect(again.lines).toEqual([...torn.lines, { after: true }]);
      await again.log.close();
    }),
    { numRuns: 40 },
  );
});

test('reports damage, drops the lines after it, and keeps a copy of the file', async () => {
  const { log } = reopen();
  for (let i = 0; i < 3; i++) log.append({ i });
  await log.close();
  const bytes = readFileSync(only());
  bytes[12]! ^= 1;
  writeFileSync(only(), bytes);
  const { log: opened, lines, damage } = reopen();
  expect(lines).toEqual([]);
  expect(damage).toEqual([expect.stringContaining('.damaged')]);
  expect(readFileSync(`${only()}.damaged`)).toEqual(bytes);
  await opened.close();
});

test('replaces the file and ignores an unfinished replacement', async () => {
  const { log } = reopen();
  log.append({ old: true });
  await log.replace([{ a: 1 }, { b: 2 }]);
  log.append({ c: 3 });
  await log.close();
  writeFileSync(`${directory}/journal-00000009.tmp`, 'half');
  const { log: again, lines } = reopen();
  expect(lines).toEqual([{ a: 1 }, { b: 2 }, { c: 3 }]);
  expect(readdirSync(directory)).toEqual(['journal-00000002.log']);
  await again.close();
});

test('uses the newer file if a crash left two files', async () => {
  const { log } = reopen();
  log.append({ old: true });
  await log.close();
  const old = readFileSync(only());
  const { log: second } = reopen();
  await second.replace([{ fresh: true }]);
  await second.close();
  appendFileSync(`${directory}/journal-00000001.log`, old);
  const { log: again, lines } = reopen();
  expect(lines).toEqual([{ fresh: true }]);
  await again.close();
});

test('removes the new file after a failed rewrite, so that it does not hide later lines', async () => {
  const { log } = reopen();
  log.append({ old: true });
  const restore = replaceCall('fsyncSync', (real) => (fd) => {
    if (fstatSync(fd).isDirectory()) throw Object.assign(new Error('EIO'), { code: 'EIO' });
    real(fd);
  });
  try {
    await expect(log.replace([{ fresh: true }])).rejects.toThrow(/cannot rewrite the journal/);
  } finally {
    restore();
  }
  log.append({ later: true });
  await log.close();
  expect(readdirSync(directory)).toEqual(['journal-00000001.log']);
  const { log: again, lines } = reopen();
  expect(lines).toEqual([{ old: true }, { later: true }]);
  await again.close();
});
