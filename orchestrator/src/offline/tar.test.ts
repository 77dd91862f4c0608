import { spawnSync } from 'node:child_process';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { BadArchive, readTar, tarEnd, tarHeader, tarPadding } from './tar.ts';

const archiveOf = (entries: readonly (readonly [string, Uint8Array])[]): Buffer =>
  Buffer.concat([
    ...entries.flatMap(([name, bytes]) => [
      tarHeader({ name, size: bytes.length }, 1_800_000_000),
      bytes,
      tarPadding(bytes.length),
    ]),
    tarEnd(),
  ]);

async function* inPieces(bytes: Buffer, length: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += length) yield bytes.subarray(at, at + length);
}

async function read(bytes: AsyncIterable<Uint8Array>): Promise<[string, Buffer][]> {
  const found: [string, Buffer][] = [];
  for await (const { name, content } of readTar(bytes)) {
    const pieces: Buffer[] = [];
    for await (const piece of content) pieces.push(Buffer.from(piece));
    found.push([name, Buffer.concat(pieces)]);
  }
  return found;
}

const entries = fc.array(fc.tuple(fc.stringMatching(/^[a-z]{1,8}\/[0-9]{1,8}$/), fc.uint8Array({ maxLength: 1500 })), {
  maxLength: 6,
});

describe('an archive', () => {
  test('reads its own archives in chunks of any size', async () => {
    await fc.assert(
      fc.asyncProperty(entries, fc.integer({ min: 1, max: 2000 }), async (given, length) => {
        const found = await read(inPieces(archiveOf(given), length));
        expect(found.map(([name, bytes]) => [name, [...bytes]])).toEqual(
          given.map(([name, bytes]) => [name, [...bytes]]),
        );
      }),
      { numRuns: 60 },
    );
  });

  test('refuses a truncated archive', async () => {
    const whole = archiveOf([['rows/1', Buffer.from('x'.repeat(700))]]);
    for (const length of [0, 100, 511, 600, 1300, 1536])
      await expect(read(inPieces(whole.subarray(0, length), 333))).rejects.toThrow(BadArchive);
  });

  test('refuses an archive with a modified header', async () => {
    const whole = archiveOf([['rows/1', Buffer.from('abc')]]);
    whole.writeUInt8(whole.readUInt8(3) ^ 1, 3);
    await expect(read(inPieces(whole, 512))).rejects.toThrow('wrong checksum');
  });

  test('writes archives that the tar command can list, even with sizes over 8 GiB', () => {
    const listed = spawnSync('tar', ['tvf', '-'], {
      input: archiveOf([['keys/a', Buffer.from('abc')]]),
      encoding: 'utf8',
    });
    expect(listed.stdout).toMatch(/^-rw------- .* 3 .* keys\/a\n$/);
    const huge = tarHeader({ name: 'terminals/a', size: 20 * 1024 ** 3 }, 0);
    expect(spawnSync('tar', ['tvf', '-'], { input: huge, encoding: 'utf8' }).stdout).toContain('21474836480');
  });
});
