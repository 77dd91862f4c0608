import { type AgentFacts, parseModule } from '@muster/protocol/module';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { encodePayload, resolvePayload } from './desired-set.ts';
import { createSharedResolution } from './shared-resolution.ts';

function moduleOf(resources: string) {
  const parsed = parseModule(`name: m\nsupports: [{ platform: linux }]\nresources:\n${resources}`);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.faults));
  return parsed.module;
}

const desired = (more = {}) => ({ modules: ['m'], layers: {}, keep: [], ...more });
const agent = (more: Partial<AgentFacts> = {}): AgentFacts => ({
  node_id: '3f8c2b0a9d7e41568c1b2a3d4e5f6071',
  name: 'web-1',
  attributes: { platform: 'linux', distro: 'debian' },
  tags: { role: 'web', zone: 'a' },
  ...more,
});

const byRole = moduleOf(
  '  - { id: a, when: { distro: debian }, resource: { file-unix: { path: /a, content: "${{ tag.role }}" } } }',
);
const byName = moduleOf('  - { id: a, resource: { file-unix: { path: /a, content: "${{ agent.name }}" } } }');
const byZone = moduleOf(
  '  - { id: a, when: { tag.zone: a }, resource: { file-unix: { path: /a, content: "${{ tag.role | default(\'none\') }}" } } }',
);

test('resolves once for agents that differ only in facts that the modules do not read', () => {
  const resolve = createSharedResolution();
  const first = resolve([byRole], desired(), agent());
  const same = agent({ node_id: 'f'.repeat(32), name: 'web-2', tags: { zone: 'b', role: 'web' } });
  expect(resolve([byRole], desired(), same)).toBe(first);
  const other = resolve([byRole], desired(), agent({ tags: { role: 'db' } }));
  expect(other.payload.resources).toMatchObject([{ body: { content: 'db' } }]);
  expect(resolve([byRole], desired(), agent())).toBe(first);
});

test('shares the resolution of an expression among agents that differ only in values that it does not read', () => {
  const byDistro = moduleOf(
    '  - { id: a, resource: { file-unix: { path: /a, content: "${{ attr.distro + tag.role + attr.rack.row }}" } } }',
  );
  const resolve = createSharedResolution();
  const facts = (more: Record<string, string>) => ({ platform: 'linux', distro: 'debian', 'rack.row': '7', ...more });
  const first = resolve([byDistro], desired(), agent({ attributes: facts({ hostname: 'a' }) }));
  expect(first.payload.resources).toMatchObject([{ body: { content: 'debianweb7' } }]);
  expect(resolve([byDistro], desired(), agent({ attributes: facts({ hostname: 'b' }) }))).toBe(first);
  const other = resolve([byDistro], desired(), agent({ attributes: facts({ hostname: 'a', 'rack.row': '8' }) }));
  expect(other.payload.resources).toMatchObject([{ body: { content: 'debianweb8' } }]);
  const renamed = resolve([byDistro], desired(), agent({ attributes: facts({ 'rack.side': 'left' }) }));
  expect(renamed.payload.resources).toMatchObject([{ body: { content: 'debianweb7' } }]);
});

test('returns the same desired state as a separate resolution for each agent', () => {
  const value = fc.constantFrom('a', 'b', 'web', 'debian', 'linux');
  const facts = fc.record(
    {
      node_id: fc.constantFrom('1'.repeat(32), '2'.repeat(32)),
      name: fc.constantFrom('web-1', 'web-2'),
      attributes: fc
        .dictionary(fc.constantFrom('distro', 'version', 'constructor'), value, { noNullPrototype: true })
        .map((attributes) => ({ ...attributes, platform: 'linux' })),
      tags: fc.dictionary(fc.constantFrom('role', 'zone', 'toString'), value, { noNullPrototype: true }),
    },
    { noNullPrototype: true },
  );
  const request = fc.record({
    modules: fc.constantFrom({ role: byRole }, { name: byName }, { zone: byZone }, { role: byRole, zone: byRole }, {}),
    facts,
    keep: fc.constantFrom([], ['kept']),
  });
  const outcome = (of: () => { payload: unknown; encoded: unknown }) => {
    try {
      const { payload, encoded } = of();
      return { payload, encoded };
    } catch (error) {
      return { error: (error as Error).message };
    }
  };
  fc.assert(
    fc.property(fc.array(request, { maxLength: 80 }), (requests) => {
      const resolve = createSharedResolution();
      for (const { modules, facts, keep } of requests) {
        const documents = Object.values(modules);
        const set = desired({ modules: Object.keys(modules), keep });
        const alone = () => {
          const payload = resolvePayload(documents, set, facts);
          return { payload, encoded: encodePayload(payload) };
        };
        expect(outcome(() => resolve(documents, set, facts))).toEqual(outcome(alone));
      }
    }),
  );
});
