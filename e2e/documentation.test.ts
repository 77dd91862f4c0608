import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { defaultConfig as agentDefaults } from '../agent/src/config.ts';
import { readInvocation } from '../orchestrator/src/config/read.ts';
import { reloadable } from '../orchestrator/src/config/reload.ts';
import { root } from '../tools/suite/cli.ts';

/** Returns the values of a nested object by dotted key, as the tables in docs/operations.md name them. */
function flat(value: object, prefix = ''): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, inner]) =>
      typeof inner === 'object' && inner !== null && !Array.isArray(inner)
        ? Object.entries(flat(inner, `${prefix}${key}.`))
        : [[`${prefix}${key}`, inner]],
    ),
  );
}

const page = readFileSync(join(root, 'docs/operations.md'), 'utf8');

/** Returns the defaults by key in the table with this heading, as written. */
function tableAfter(heading: string): Record<string, string> {
  const [, rows = ''] = page.split(heading);
  const table = rows.split('\n\n')[0] as string;
  return Object.fromEntries(
    [...table.matchAll(/^\| `([a-z_.]+)` \| ([^|]*?) \|/gm)].map((match) => [match[1], match[2]] as [string, string]),
  );
}

const shown = (value: unknown): unknown =>
  value === null || (Array.isArray(value) && value.length === 0)
    ? expect.stringMatching(/^none/)
    : value === ''
      ? 'empty'
      : `\`${value}\``;

describe('docs/operations.md', () => {
  test('docs/operations.md lists every configuration key of the orchestrator with its default', () => {
    const { config } = readInvocation([], {}, 'data');
    const expected = Object.fromEntries(Object.entries(flat(config)).map(([key, value]) => [key, shown(value)]));
    expect(tableAfter('| key | default | what it is |\n')).toEqual(expected);
  });

  test('docs/operations.md marks exactly the configuration keys that a reload applies', () => {
    const marked = [...page.matchAll(/^\| `([a-z_.]+)` \|.* ↻ \|$/gm)].map(([, key]) => key);
    expect(marked.sort()).toEqual([...reloadable].sort());
  });

  test('docs/operations.md lists every configuration key of the agent with its default', () => {
    const expected = Object.fromEntries(Object.entries(flat(agentDefaults)).map(([key, value]) => [key, shown(value)]));
    expect(tableAfter('| key | default |\n')).toEqual(expected);
  });
});
