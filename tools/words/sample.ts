/*
 * Prints a random sample of the texts that users and contributors read, to compare with docs/style.md.
 *
 *   node tools/words/sample.ts [--seed 1] [--comments 130] [--messages 60] [--logs 60] [--tests 40] [--commits 60]
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { root } from '../suite/cli.ts';
import { draw } from './draw.ts';
import { type TextKind, textsOf, type WrittenText } from './texts.ts';

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    comments: { type: 'string', default: '130' },
    messages: { type: 'string', default: '60' },
    logs: { type: 'string', default: '60' },
    tests: { type: 'string', default: '40' },
    commits: { type: 'string', default: '60' },
  },
});

const git = (...args: string[]) =>
  execFileSync('git', args, { cwd: root, encoding: 'utf8', maxBuffer: 1 << 28 })
    .trim()
    .split('\n');
const texts = git('ls-files', '*.ts', '*.tsx').flatMap((file): WrittenText[] =>
  textsOf(file, readFileSync(join(root, file), 'utf8')),
);

const requested: [TextKind, string][] = [
  ['comment', values.comments],
  ['message', values.messages],
  ['log', values.logs],
  ['test', values.tests],
];
for (const [kind, count] of requested) {
  const all = texts.filter((text) => text.kind === kind);
  console.log(`\n## ${kind}: ${count} of ${all.length}\n`);
  for (const { file, line, text } of draw(all, Number(count), Number(values.seed)))
    console.log(`- ${file}:${line}  ${text}`);
}
console.log(`\n## commit: the last ${values.commits}\n`);
for (const subject of git('log', `--max-count=${values.commits}`, '--format=%s')) console.log(`- ${subject}`);
