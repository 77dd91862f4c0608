import { posix } from 'node:path';
import { HostFailure } from '../../host/failure.ts';

/** Output lines of `sha256sum` and of `sha256sum --tag`. A `*` in front of the name marks binary mode. */
const coreutils = /^\\?([0-9a-f]{64})(?:[ \t]+\*?(.+?))?[ \t\r]*$/i;
const tagged = /^SHA256 ?\((.+)\) = ([0-9a-f]{64})[ \t\r]*$/i;

/**
 * Finds the SHA-256 of a download in a checksum file.
 * @param text lines with a hash and a file name, or a single line with a hash
 * @param url URL of the download, whose last part is the file name
 * @throws HostFailure if the hash is missing or ambiguous
 */
export function sumIn(text: string, url: string): string {
  const name = fileNameOf(url);
  const lines = text.split('\n').flatMap((line): { sum: string; name: string | null }[] => {
    const [, sum, file] = coreutils.exec(line) ?? [];
    if (sum !== undefined) return [{ sum: sum.toLowerCase(), name: file === undefined ? null : posix.basename(file) }];
    const [, taggedFile, taggedSum] = tagged.exec(line) ?? [];
    if (taggedSum === undefined || taggedFile === undefined) return [];
    return [{ sum: taggedSum.toLowerCase(), name: posix.basename(taggedFile) }];
  });
  const [only] = lines;
  if (lines.length === 1 && only !== undefined && only.name === null) return only.sum;
  const sums = new Set(lines.filter((line) => line.name === name).map(({ sum }) => sum));
  const [sum] = sums;
  if (sum === undefined) throw new HostFailure(`it has no SHA-256 for a file with the name ${name}`);
  if (sums.size > 1) throw new HostFailure(`it has several SHA-256 for a file with the name ${name}`);
  return sum;
}

function fileNameOf(url: string): string {
  const name = posix.basename(URL.parse(url)?.pathname ?? '');
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}
