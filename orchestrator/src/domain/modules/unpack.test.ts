import { createGzip, gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { archiveOf, inPieces } from '../../../test/archives.ts';
import { unpack } from './unpack.ts';

const read = async (bytes: AsyncIterable<Uint8Array>) => {
  const files: { path: string; text: string; executable: boolean }[] = [];
  await unpack(bytes, async ({ path, executable, content }) => {
    const pieces: Uint8Array[] = [];
    for await (const piece of content) pieces.push(piece);
    files.push({ path, text: Buffer.concat(pieces).toString(), executable });
  });
  return files;
};
const refusalOf = (bytes: AsyncIterable<Uint8Array>) =>
  read(bytes).then(
    (files) => `took ${files.length} files`,
    (error: Error & { code?: string }) => `${error.code}: ${error.message}`,
  );
const refusal = async (...entries: Parameters<typeof archiveOf>[0]) => refusalOf(inPieces(await archiveOf(entries)));

describe('unpack', () => {
  test('reads files with their contents and whether they are executable', async () => {
    const archive = await archiveOf([
      { name: './', type: 'directory' },
      { name: './module.yml', text: 'name: m\n' },
      { name: 'files/', type: 'directory' },
      { name: 'files/run', text: 'x'.repeat(100_000), mode: 0o755 },
      { name: `files/${'long'.repeat(40)}/é`, text: 'ü' },
    ]);
    const files = await read(inPieces(archive, 100));
    expect(files.map(({ path, text, executable }) => [path, text.length, executable])).toEqual([
      ['module.yml', 8, false],
      ['files/run', 100_000, true],
      [`files/${'long'.repeat(40)}/é`, 1, false],
    ]);
  });

  test.each([
    ['../x', 'must not contain ".."'],
    ['files/../../x', 'must not contain ".."'],
    ['/etc/passwd', 'must be relative'],
    ['files//x', 'must not contain "//"'],
    ['files/./x', 'must not contain "."'],
    ['files\\x', 'control characters or "\\"'],
    ['files/e\u0301', 'Normalization Form C'],
    [`${'a/'.repeat(40)}x`, 'at most 32 levels'],
    ['x'.repeat(256), 'more than 255 bytes'],
  ])('refuses the name %j', async (name, reason) => {
    expect(await refusal({ name })).toContain(reason);
  });

  test('refuses a long name of slashes immediately', async () => {
    // Uses an extended header, because tar-stream otherwise takes quadratic time to write such a name.
    expect(await refusal({ name: 'x', pax: { path: `x${'/'.repeat(900_000)}y` } })).toContain('is too long');
  });

  test.each(['symlink', 'link', 'block-device', 'character-device', 'fifo'] as const)('refuses a %s', async (type) => {
    expect(await refusal({ name: 'x', type, linkname: '/etc/passwd' })).toMatch(
      /^module_invalid: x is a .* only files/,
    );
  });

  test('refuses an archive that does not end, although it unpacks to nothing', async () => {
    // The longest header, because reading millions of short ones takes seconds. Flag 4 adds an extra field (RFC 1952, section 2.3.1.1).
    const [header, empty] = [gzipSync('').subarray(0, 10), gzipSync('').subarray(10)];
    header[3] = 4;
    const member = Buffer.concat([header, Buffer.from([0xff, 0xff]), Buffer.alloc(0xffff), empty]);
    const nothing = Buffer.concat(Array.from({ length: 16 }, () => member));
    let sent = 0;
    const endless = async function* () {
      for (; ; sent += nothing.length) yield nothing;
    };
    expect(await refusalOf(endless())).toBe('module_invalid: the archive is larger than 576 MiB');
    expect(sent).toBeLessThan(580 * 1024 * 1024);
  });

  test('refuses names that are equal, differ only in case, or are both a file and a directory', async () => {
    expect(await refusal({ name: 'a' }, { name: 'a' })).toContain('twice');
    expect(await refusal({ name: 'Files/a' }, { name: 'files/b' })).toContain('differ only in case');
    expect(await refusal({ name: 'straße' }, { name: 'STRASSE' })).toContain('differ only in case');
    expect(await refusal({ name: 'a' }, { name: 'a/b' })).toContain('twice');
    expect(await refusal({ name: 'a/b' }, { name: 'a' })).toContain('twice');
  });

  test('refuses 100,000 files after the first ten thousand', async () => {
    const entries = Array.from({ length: 10_001 }, (_, index) => ({ name: `f${index}` }));
    expect(await refusal(...entries)).toContain('more than 10000 files');
  });

  test('refuses a decompression bomb before unpacking it', async () => {
    let sent = 0;
    async function* zeros() {
      const bomb = createGzip({ level: 9 });
      const zero = Buffer.alloc(1024 * 1024);
      const pieces: Buffer[] = [];
      bomb.on('data', (piece: Buffer) => pieces.push(piece));
      for (let count = 0; count < 2048; count++) {
        await new Promise((resolve) => bomb.write(zero, resolve));
        for (const piece of pieces.splice(0)) {
          sent += piece.length;
          yield piece;
        }
      }
    }
    expect(await refusalOf(zeros())).toContain('too much data between its files');
    expect(sent).toBeLessThan(100_000);
  });

  test('refuses a file that claims more bytes than a module may have', async () => {
    const header = Buffer.from((await archiveOf([{ name: 'x', text: '' }])).subarray(0));
    expect(header.length).toBeGreaterThan(0);
    const { gunzipSync } = await import('node:zlib');
    const raw = gunzipSync(header);
    raw.write('77777777777\0', 124, 'latin1');
    let sum = 256;
    for (let at = 0; at < 512; at++) if (at < 148 || at >= 156) sum += raw[at] ?? 0;
    raw.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
    expect(await refusalOf(inPieces(gzipSync(raw)))).toContain('exceed 512 MiB');
  });

  test('refuses an archive that is cut off, or is not an archive', async () => {
    const whole = await archiveOf([{ name: 'module.yml', text: 'x'.repeat(50_000) }]);
    expect(await refusalOf(inPieces(whole.subarray(0, -60)))).toContain('not complete');
    expect(await refusalOf(inPieces(Buffer.from('hello')))).toContain('not a gzip');
    expect(await refusalOf(inPieces(gzipSync(Buffer.alloc(2000, 7))))).toContain('not a gzip');
    expect(await refusalOf(inPieces(Buffer.alloc(0)))).toContain('not complete');
  });

  test('propagates the error of a reader', async () => {
    const archive = await archiveOf([{ name: 'a', text: 'x'.repeat(500_000) }, { name: 'b' }]);
    const reading = unpack(inPieces(archive), async ({ path }) => {
      throw new Error(`no room for ${path}`);
    });
    await expect(reading).rejects.toThrow('no room for a');
  });
});
