import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pixelmatch from 'pixelmatch';
import { PNG } from 'pngjs';
import { root } from '../../tools/suite/cli.ts';

/** Folder with the approved screenshots. */
const approved = join(import.meta.dirname, 'approved');
/** Folder for the screenshots that differ. */
const differing = join(root, '.cache/picture-differences');

/**
 * Maximum number of differing pixels. Text may be antialiased differently in a few places; a button that moves by one
 * pixel changes more.
 */
export const maxDifferingPixels = 60;

/**
 * Returns the number of differing pixels, and an image that marks them. If the sizes differ, all pixels count as
 * different.
 */
export function differenceOf(one: Buffer, other: Buffer): { readonly pixels: number; readonly picture: Buffer | null } {
  const [a, b] = [PNG.sync.read(one), PNG.sync.read(other)];
  if (a.width !== b.width || a.height !== b.height) return { pixels: b.width * b.height, picture: null };
  const marked = new PNG({ width: a.width, height: a.height });
  const pixels = pixelmatch(a.data, b.data, marked.data, a.width, a.height, { threshold: 0.15 });
  return { pixels, picture: PNG.sync.write(marked) };
}

/** Whether new screenshots replace the approved ones: `npm run console:approve`. */
const approves = process.env.MUSTER_APPROVE_PICTURES !== undefined;

/**
 * Compares a screenshot with the approved one.
 * @returns the difference, with the folder of both screenshots; null if there is none
 */
export function faultOf(name: string, picture: Buffer): string | null {
  const file = join(approved, `${name}.png`);
  if (approves) {
    mkdirSync(approved, { recursive: true });
    // Encodes without filters, because they do not help with flat areas. The file is smaller than the browser's own.
    const options = { colorType: 2, filterType: 0, deflateLevel: 9, deflateStrategy: 0 } as const;
    writeFileSync(file, PNG.sync.write(PNG.sync.read(picture), options));
    return null;
  }
  const { pixels, picture: marked } = differenceOf(readFileSync(file), picture);
  if (pixels <= maxDifferingPixels) return null;
  mkdirSync(differing, { recursive: true });
  writeFileSync(join(differing, `${name}.png`), picture);
  if (marked !== null) writeFileSync(join(differing, `${name}.difference.png`), marked);
  return `${name}: ${pixels} pixels differ; see ${differing}. If the new screenshot is correct, run: npm run console:approve`;
}
