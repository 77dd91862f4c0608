import { expect } from 'vitest';
import { operation } from '../../../agent/src/converge/test/desired.ts';
import { documented } from '../../documented.ts';
import type { DrivenAgent } from '../driven-agent.ts';
import { resolvedModule } from '../subjects/subject.ts';

/** The SHA-256 of all files in docs/coming-from.md. */
export const exampleHash = '2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae';

/**
 * Expects that an agent applies a module with idioms as planned, applies it again without a change, and removes it.
 * @param name name of the module in docs/coming-from.md
 * @param family of the distribution that the module supports
 * @param replacements names and addresses on the machine, by those in the module
 * @param present identities of resources that find the machine as declared, such as installed packages
 */
export async function expectModuleApplied(
  agent: DrivenAgent,
  name: string,
  {
    family = 'debian',
    replacements = {},
    present = [],
  }: { family?: string; replacements?: Readonly<Record<string, string>>; present?: readonly string[] },
): Promise<void> {
  const source = documented('docs/coming-from.md', { language: 'yaml', content: `name: ${name}\n` }, replacements);
  const resources = resolvedModule(source, family);
  const run = async (kind: 'plan' | 'apply', declared = resources) => {
    const { results } = await agent.run(operation(kind, declared));
    return results.map(({ identity, status, message }) => ({ identity, status, message }));
  };
  const all = (status: string) =>
    resources.map(({ identity }) =>
      expect.objectContaining({ identity, status: present.includes(identity) ? 'unchanged' : status }),
    );
  expect(await run('plan')).toEqual(all('would_change'));
  expect(await run('apply')).toEqual(all('changed'));
  expect(await run('apply')).toEqual(all('unchanged'));
  const removed = await run('apply', []);
  expect(removed).toHaveLength(resources.length);
  expect(removed).toEqual(expect.arrayContaining(all('changed')));
}
