import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../tools/suite/cli.ts';

/**
 * Returns a code block of a documentation page, with the addresses and paths of a test.
 * @param page path in the repository
 * @param content text that only this block of the language contains
 * @param replacements in their order; each text must occur in the block
 * @throws Error if the page has no such block, or the block lacks a text that is to be replaced
 */
export function documented(
  page: string,
  { language, content = '' }: { language: string; content?: string },
  replacements: Readonly<Record<string, string>>,
): string {
  const text = readFileSync(join(root, page), 'utf8');
  const blocks = [...text.matchAll(new RegExp(`^( *)\`\`\`${language}\\n(.*?)^\\1\`\`\`$`, 'gms'))]
    .map(([, indentation = '', block = '']) => block.replaceAll(new RegExp(`^${indentation}`, 'gm'), ''))
    .filter((block) => block.includes(content));
  let [block] = blocks;
  if (block === undefined || blocks.length > 1)
    throw new Error(`${page} has ${blocks.length} blocks in ${language} that contain ${JSON.stringify(content)}`);
  for (const [before, after] of Object.entries(replacements)) {
    if (!block.includes(before)) throw new Error(`the block in ${language} of ${page} lacks ${before}`);
    block = block.replaceAll(before, after);
  }
  return block;
}
