import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { AgentFacts } from './conditions.ts';
import type { Json, ModuleDocument } from './document.ts';
import { parseModule } from './parse.ts';
import { resolveDesiredSet } from './resolve.ts';

/**
 * Modules for version 0.1, with the agents and parameters for which they were resolved. Never change them, because a
 * module must keep its meaning in all later versions. The modules come from the recipes, the examples, the
 * documentation, and the tests.
 */
interface Golden {
  /** Sources of the modules in one desired set. */
  readonly modules: readonly string[];
  readonly requests: readonly {
    readonly agent: AgentFacts;
    readonly parameters: Record<string, Record<string, Json>>;
    /** SHA-256 of the resolution as JSON; the error code if the modules do not resolve. */
    readonly result: string;
  }[];
}

const file = join(import.meta.dirname, '../../test/golden/resolutions.json');
const golden = JSON.parse(readFileSync(file, 'utf8')) as Golden[];

function parsed(source: string): ModuleDocument {
  const found = parseModule(source);
  if (!found.ok) throw new Error(`${found.faults.map(({ message }) => message).join('\n')}\n${source}`);
  return found.module;
}

test('resolves each version 0.1 module to the recorded result', () => {
  const different = golden.flatMap(({ modules, requests }) => {
    const documents = modules.map(parsed);
    return requests.flatMap(({ agent, parameters, result }) => {
      const resolution = resolveDesiredSet({ modules: documents, parameters, agent });
      const found = resolution.ok
        ? createHash('sha256').update(JSON.stringify(resolution)).digest('hex')
        : resolution.code;
      return found === result ? [] : [{ modules, agent, parameters, resolution }];
    });
  });
  expect(different).toEqual([]);
});

test('covers modules that can be resolved and modules that cannot', () => {
  const results = golden.flatMap(({ requests }) => requests.map(({ result }) => result));
  expect(results.filter((result) => result.length === 64).length).toBeGreaterThan(500);
  expect(new Set(results.filter((result) => result.length !== 64))).toEqual(
    new Set(['module_unresolved', 'module_conflict']),
  );
});
