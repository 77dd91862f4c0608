import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parseModule } from './parse.ts';
import { resolveDesiredSet } from './resolve.ts';

/**
 * Modules with mistakes that newcomers make. messages.txt contains the error messages for review: each must explain how
 * to correct the mistake.
 */
const folder = join(import.meta.dirname, '../../test/wrong-modules');
const files = readdirSync(folder).filter((name) => name.endsWith('.yml'));

const attributes = { platform: 'linux', distro: 'debian', version: '12', init_system: 'systemd' };
const agent = { name: 'web-1', node_id: 'a'.repeat(32), attributes, tags: {} };

function messagesOf(source: string): string[] {
  const parsed = parseModule(source);
  const warnings = parsed.warnings.map((warning) => ({ ...warning, message: `warning: ${warning.message}` }));
  const resolution = parsed.ok ? resolveDesiredSet({ modules: [parsed.module], agent }) : null;
  const faults = parsed.ok ? (resolution?.ok === false ? resolution.faults : []) : parsed.faults;
  return [...faults, ...warnings].map(({ line, column, message }) => `${line}:${column} ${message}`);
}

test('reports the error in each invalid module with line, column, and a correction', async () => {
  expect(files.length).toBeGreaterThanOrEqual(40);
  const texts = files.map((name) => {
    const source = readFileSync(join(folder, name), 'utf8');
    const messages = messagesOf(source);
    expect(messages, name).not.toEqual([]);
    return `${name}\n${messages.map((message) => `  ${message}\n`).join('')}`;
  });
  await expect(texts.join('\n')).toMatchFileSnapshot(join(folder, 'messages.txt'));
});
