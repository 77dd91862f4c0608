import { expect, test } from 'vitest';
import { sumIn } from './sum.ts';

const url = 'https://example.org/v1/app%201.tar.gz?x=1';
const sum = 'ab'.repeat(32);
const other = 'cd'.repeat(32);

test.each([
  ['a single hash', `${sum.toUpperCase()}\n`],
  ['lines of sha256sum', `${other}  app 1.tar.gz.sig\n${sum}  app 1.tar.gz\r\n`],
  ['a file in binary mode and a folder', `${sum} *dist/app 1.tar.gz\n`],
  ['lines with a tag', `SHA256 (other) = ${other}\nSHA256 (app 1.tar.gz) = ${sum}\n`],
  ['lines of other hashes', `MD5 (app 1.tar.gz) = ${'0'.repeat(32)}\n${sum}  app 1.tar.gz\n`],
])('finds the hash in %s', (_, text) => expect(sumIn(text, url)).toBe(sum));

test('refuses a checksum file that contains no hash, or several hashes, for the file', () => {
  expect(() => sumIn('', url)).toThrow('no SHA-256 for a file with the name app 1.tar.gz');
  expect(() => sumIn(`${sum}  other\n`, url)).toThrow('no SHA-256');
  expect(() => sumIn(`${sum}\n${other}\n`, url)).toThrow('no SHA-256');
  expect(() => sumIn(`${sum}  app 1.tar.gz\n${other}  app 1.tar.gz\n`, url)).toThrow('several');
});
