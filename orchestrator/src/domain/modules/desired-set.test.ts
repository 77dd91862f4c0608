import type { Assignment } from '@muster/protocol/http';
import { parseModule } from '@muster/protocol/module';
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
  test('lists modules from matching assignments, then requested ones, without duplicates', () => {
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

  test('uses the parameters from assignments, and refuses conflicting parameters', () => {
    const set = (name: string, port: number) => assignment({ name, parameters: { m: { port } } });
    expect(desiredModules([set('a', 80), set('b', 80)], web, { modules: [], windowOpen: false }).parameters).toEqual({
      m: { port: 80 },
    });
    expect(() => desiredModules([set('a', 80), set('b', 81)], web, { modules: [], windowOpen: false })).toThrow(
      'assignments a and b',
    );
  });

  test('uses the parameter of the assignment with the highest precedence', () => {
    const set = (name: string, port: number, precedence: number) =>
      assignment({ name, precedence, parameters: { m: { port } } });
    const portOf = (...all: Assignment[]) =>
      desiredModules(all, web, { modules: [], windowOpen: false }).parameters.m?.port;
    expect(portOf(set('a', 80, 10), set('b', 81, 0), set('c', 82, -5))).toBe(80);
    expect(portOf(set('a', 80, 0), set('b', 81, 0), set('c', 82, 1))).toBe(82);
    expect(() => portOf(set('a', 80, 1), set('b', 81, 1), set('c', 82, 0))).toThrow(
      'assignments a and b set this parameter to different values; give one of them a higher precedence',
    );
    // A run that started before an upgrade has assignments without precedence.
    const { precedence: _, ...former } = set('b', 81, 0);
    expect(portOf(set('a', 80, 1), former as Assignment)).toBe(80);
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
    return resolvePayload([parsed.module], { modules: ['m'], parameters: {}, keep: ['kept'] }, agent);
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
