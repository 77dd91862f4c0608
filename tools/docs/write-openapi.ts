// Writes docs/openapi.json from the route table, and the tables in docs/api.md from both. With `--check`, fails if a
// file is out of date.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../suite/cli.ts';

const path = join(root, 'docs', 'openapi.json');
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string };
const maxBuffer = 64 * 1024 * 1024;
const printer = join(root, 'orchestrator', 'src', 'http', 'openapi', 'openapi.ts');
const document: unknown = JSON.parse(
  execFileSync(process.execPath, [printer, version], { encoding: 'utf8', maxBuffer }),
);
// Formats the file, so that the repository's format check passes.
const text = execFileSync(
  join(root, 'node_modules', '.bin', 'biome'),
  ['format', '--stdin-file-path=docs/openapi.json', '--files-max-size=16777216'],
  { cwd: root, input: JSON.stringify(document, null, 2), encoding: 'utf8', maxBuffer },
);

if (!process.argv.includes('--check')) writeFileSync(path, text);
else if (!existsSync(path) || readFileSync(path, 'utf8') !== text) {
  console.error('docs/openapi.json is out of date; run: node tools/docs/write-openapi.ts');
  process.exitCode = 1;
}

// Writes or checks docs/api.md, which describes the same API.
await import('./api-page.ts');
