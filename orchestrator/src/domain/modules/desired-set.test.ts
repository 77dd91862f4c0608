import type { Assignment } from '@muster/protocol/http';
import { type Json, parseModule } from '@muster/protocol/module';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { assignmentMatches, desiredModules, resolvePayload } from './desired-set.ts';

const assignment = (more: Partial<Assignment>): Assignment => ({
  name: 'a',
  modules: ['m'],
  selector: 'role=web',
  description: null,
  mode: 'enforce',
  window_only: false,
  parameters: {},
  precedence: 0,
  created_at: 0,
  created_by: 'x',
  ...more,
});
const web = { tags: { role: 'web' }, attributes: {} };

describe('desiredModules', () => {
  test('lists modules from matching assignments, then requested modules, without duplicates', () => {
    const all = [
      assignment({ name: 'a', modules: ['one', 'two'] }),
      assignment({ name: 'b', modules: ['two', 'three'] }),
      assignment({ name: 'c', modules: ['other'], selector: 'role=db' }),
    ];
    expect(desiredModules(all, web, { modules: ['three', 'four'], windowOpen: false }).modules).toEqual([
      'one',
      'two',
      'three',
      'four',
    ]);
  });

  test('matches no agent with an empty or invalid selector', () => {
    for (const selector of ['', '   ', '=', 'role='])
      expect(assignmentMatches(assignment({ selector }), { tags: { x: 'y' }, attributes: {} })).toBe(false);
  });

  test('keeps the resources of modules that are audited or wait for a window', () => {
    const all = [
      assignment({ name: 'a', modules: ['audited', 'both'], mode: 'audit' }),
      assignment({ name: 'b', modules: ['windowed'], window_only: true }),
      assignment({ name: 'c', modules: ['both'] }),
    ];
    expect(desiredModules(all, web, { modules: [], windowOpen: false })).toMatchObject({
      modules: ['both'],
      keep: ['audited', 'windowed'],
    });
    expect(desiredModules(all, web, { modules: [], windowOpen: true })).toMatchObject({
      modules: ['windowed', 'both'],
      keep: ['audited'],
    });
    expect(desiredModules(all, web, { modules: ['audited'], windowOpen: false }).keep).toEqual(['windowed']);
  });

  test('never lists a module both as desired and as kept', () => {
    const any = fc.record({
      modules: fc.uniqueArray(fc.constantFrom('a', 'b', 'c', 'd'), { minLength: 1 }),
      mode: fc.constantFrom('enforce' as const, 'audit' as const),
      window_only: fc.boolean(),
      selector: fc.constantFrom('role=web', 'role=db', ''),
    });
    fc.assert(
      fc.property(
        fc.array(any),
        fc.uniqueArray(fc.constantFrom('a', 'e')),
        fc.boolean(),
        (assignments, requested, open) => {
          const all = assignments.map((more, i) => assignment({ ...more, name: `n${i}` }));
          const { modules, keep } = desiredModules(all, web, { modules: requested, windowOpen: open });
          expect(new Set([...modules, ...keep]).size).toBe(modules.length + keep.length);
          for (const module of requested) expect(modules).toContain(module);
        },
      ),
    );
  });

  test('layers the parameters of matching assignments in enforce mode, for modules that the agent has', () => {
    const all = [
      assignment({ name: 'a', parameters: { m: { port: 80 } } }),
      assignment({ name: 'b', parameters: { m: { port: 81 }, other: { x: 1 } }, precedence: 5 }),
      assignment({ name: 'c', parameters: { m: { port: 82 } }, mode: 'audit' }),
      assignment({ name: 'd', parameters: { m: { port: 83 } }, selector: 'role=db' }),
    ];
    expect(desiredModules(all, web, { modules: [], windowOpen: false }).layers).toEqual({
      m: {
        port: [
          { value: 80, from: 'assignment', name: 'a', precedence: 0 },
          { value: 81, from: 'assignment', name: 'b', precedence: 5 },
        ],
      },
    });
  });
});

describe('values of several assignments', () => {
  const agent = { node_id: '1', name: 'web-1', attributes: { platform: 'linux' }, tags: { role: 'web' } };
  const contentOf = (declared: string, ...all: Assignment[]) => {
    const parsed = parseModule(`name: m
supports: [{ platform: linux }]
parameters: { v: { ${declared} } }
resources: [{ resource: { file-unix: { path: /x, content: "\${{ param.v | json }}" } } }]`);
    if (!parsed.ok) throw new Error(JSON.stringify(parsed.faults));
    const desired = desiredModules(all, agent, { modules: [], windowOpen: false });
    const [resource] = resolvePayload([parsed.module], desired, agent).resources;
    return JSON.parse(String((resource?.body as { content?: string } | undefined)?.content)) as unknown;
  };
  const set = (name: string, v: Json, precedence = 0) => assignment({ name, precedence, parameters: { m: { v } } });

  test('uses the value with the highest precedence', () => {
    expect(contentOf('type: integer', set('a', 80), set('b', 80))).toBe(80);
    expect(contentOf('type: integer', set('a', 80, 10), set('b', 81, 0), set('c', 82, -5))).toBe(80);
    expect(contentOf('type: integer', set('a', 80, 0), set('b', 81, 0), set('c', 82, 1))).toBe(82);
    // A run that started before an upgrade has assignments without precedence.
    const { precedence: _, ...former } = set('b', 81, 0);
    expect(contentOf('type: integer', set('a', 80, 1), former as Assignment)).toBe(80);
  });

  test('refuses different values of the same precedence, naming both assignments', () => {
    expect(() => contentOf('type: integer', set('a', 80, 1), set('b', 81, 1), set('c', 82, 0))).toThrow(
      'assignments a and b set the parameter v of module m to different values; give one of them a higher precedence',
    );
  });

  test('merges values as the parameter declares', () => {
    expect(
      contentOf(
        'type: map, merge: deep, default: { a: 1, b: 1 }',
        set('a', { c: { x: 1 } }),
        set('b', { b: 2, c: { y: 2 } }, 1),
      ),
    ).toEqual({ a: 1, b: 2, c: { x: 1, y: 2 } });
    expect(contentOf('type: list, merge: unique', set('a', ['x', 'z']), set('b', ['y', 'x'], -1))).toEqual([
      'y',
      'x',
      'z',
    ]);
  });
});

describe('resolved payload', () => {
  const agent = {
    node_id: '3f8c2b0a9d7e41568c1b2a3d4e5f6071',
    name: 'web-1',
    attributes: { platform: 'linux' },
    tags: {},
  };
  const resolve = (resources: string) => {
    const parsed = parseModule(`name: m\nsupports: [{ platform: linux }]\n${resources}`);
    if (!parsed.ok) throw new Error(JSON.stringify(parsed.faults));
    return resolvePayload([parsed.module], { modules: ['m'], layers: {}, keep: ['kept'] }, agent);
  };

  test('includes the names of modules whose resources must be kept', () => {
    const payload = resolve('resources: [{ resource: { file-unix: { path: /x, content: "${{ agent.name }}" } } }]');
    expect(payload).toMatchObject({ keep_modules: ['kept'], resources: [{ body: { content: 'web-1' } }] });
  });

  test('leaves references to secrets unresolved', () => {
    const payload = resolve('resources: [{ resource: { file-unix: { path: /x, content: "${{ secrets.k }}" } } }]');
    expect(payload.resources).toMatchObject([
      { deferred: [{ path: ['content'], parts: [{ secret: 'k', default: null }] }], sensitive_fields: ['content'] },
    ]);
  });

  test('includes the verifications that modules declare', () => {
    expect(resolve('')).not.toHaveProperty('verify');
    expect(resolve('verify: [{ command: "test ${{ agent.name }}" }]').verify).toEqual([
      { module: 'm', type: 'command', body: { command: 'test web-1' }, deferred: [] },
    ]);
  });
});
