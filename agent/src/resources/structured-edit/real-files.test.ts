import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { changeOneValue, type SyntaxName } from './test/real-file.ts';

/** Files from installed npm packages. `npm run soak -- configuration-files` tests files from Debian packages. */
const packages = join(import.meta.dirname, '../../../../node_modules');
const patterns: readonly [SyntaxName, string][] = [
  ['json', '*/package.json'],
  ['yaml', '*/.github/{dependabot,FUNDING,workflows/*}.yml'],
];

test.each(patterns)('changes only the line of a value in real %s files', (name, pattern) => {
  const paths = globSync(pattern, { cwd: packages });
  const start = Math.floor(Math.random() * paths.length);
  let changed = 0;
  for (const [index, path] of [...paths.slice(start), ...paths.slice(0, start)].slice(0, 12).entries()) {
    const trial = changeOneValue(name, path, readFileSync(join(packages, path), 'utf8'), Math.random());
    expect(trial.is, `${path}: ${JSON.stringify(trial)}, number ${index}`).not.toBe('wrong');
    if (trial.is === 'changed') changed++;
  }
  expect(changed).toBeGreaterThan(6);
});
