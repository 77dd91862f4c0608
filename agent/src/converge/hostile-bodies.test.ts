import { existsSync, readFileSync } from 'node:fs';
import {
  type Kind,
  kinds,
  type ResolvedResource,
  type ResourceType,
  resourceBodyFaults,
} from '@muster/protocol/module';
import { orchestratorMessageSchema } from '@muster/protocol/wire';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { HostFailure } from '../host/failure.ts';
import { bodyFault } from '../resources/provider/body-shape.ts';
import { providerOf, watchedPaths } from '../resources/registry.ts';
import { directory, file, operation } from './test/desired.ts';
import { useAgent } from './test/harness.ts';

/**
 * Sends bodies that a hostile orchestrator, or one of a different version, may send. Executes only kinds that are safe
 * on the test machine; only validates the bodies of other kinds.
 */

const h = useAgent();
const types = (Object.keys(kinds) as ResourceType[]).filter(
  (type) => !kinds[type].platforms.every((p) => p !== 'linux'),
);
const fieldsOf = (type: ResourceType): string[] => {
  const kind: Kind = kinds[type];
  return [...Object.keys(kind.required), ...Object.keys(kind.optional)];
};

const invalidText = fc.oneof(
  fc.constantFrom('', '/', '/..', '/a/../b', 'relative', '\0', '/\0', '//x', '/x/', '-', '😀\ud800', '__proto__'),
  fc.constantFrom('0644', '99999', 'root', 'present', 'absent', 'perhaps', 'x'.repeat(5_000), '/x', 'nobody'),
  fc.string({ maxLength: 10 }),
);
const invalidValue = fc.oneof({ weight: 9, arbitrary: invalidText }, fc.jsonValue({ maxDepth: 2 }));
/** Returns a body with some fields of the kind, arbitrary values, and possibly other fields. */
const bodyOf = (type: ResourceType): fc.Arbitrary<Record<string, unknown>> =>
  fc
    .tuple(
      fc.dictionary(fc.constantFrom(...fieldsOf(type)), invalidValue),
      fc.dictionary(fc.constantFrom('newer_field', '__proto__', 'constructor', 'toString', 'symlink'), invalidValue, {
        maxKeys: 1,
      }),
      // Most bodies are complete, because a missing field hides all other errors.
      fc.record(Object.fromEntries(Object.keys(kinds[type].required).map((name) => [name, invalidText]))),
      fc.nat(9),
    )
    // Serializes the body as the link does.
    .map(([own, more, required, chance]) =>
      JSON.parse(JSON.stringify({ ...(chance > 0 ? required : {}), ...own, ...(chance < 3 ? more : {}) })),
    );

describe('a body from the wire', () => {
  test.each(types)('accepts every body of %s that the protocol accepts', (type) => {
    fc.assert(
      fc.property(bodyOf(type), (body) => {
        const fault = bodyFault({ type, body: body as never });
        if (fault !== null) {
          expect(fault.length).toBeLessThan(1_500);
          expect(resourceBodyFaults(type, body as never)).not.toEqual([]);
        }
      }),
      { numRuns: 200 },
    );
  });

  test.each(types)('prepares an operation with any body of %s, whether valid or not', (type) => {
    const provider = providerOf(type);
    if (provider === null) return;
    const body = fc.oneof({ weight: 5, arbitrary: bodyOf(type) }, fc.constant({}));
    fc.assert(
      fc.property(body, (body) => {
        const hostile = { ...file('/x'), key: 'hostile', type, body: body as never };
        expect(['string', 'null']).toContain(provider.path(hostile) === null ? 'null' : typeof provider.path(hostile));
        expect(Array.isArray(provider.brings(hostile))).toBe(true);
        expect(Array.isArray(watchedPaths(hostile))).toBe(true);
        expect(typeof provider.revealsCompletion(hostile)).toBe('boolean');
        try {
          provider.check(hostile);
        } catch (error) {
          expect(error).toBeInstanceOf(HostFailure);
          if (bodyFault(hostile) === null) expect((error as Error).message).not.toContain('please report it');
        }
      }),
      { numRuns: 200 },
    );
  });

  test('lists the errors in a body without showing its values', () => {
    const body = { path: 7, mode: ['hunter2'], ensure: 'perhaps', shiny: 'hunter2' };
    expect(bodyFault({ type: 'file-unix', body: body as never })).toBe(
      'the orchestrator sent a file-unix that this agent does not understand: `shiny` is unknown; `path` must be text; ' +
        '`mode` must be text; `ensure` must be present or absent. If the agent is older than the orchestrator, update it.',
    );
    expect(bodyFault({ type: 'script', body: {} as never })).toContain('`program` is missing; `apply` is missing');
    expect(bodyFault({ type: 'file-unix', body: { path: '/x', mode: null } as never })).toBeNull();
  });

  test('fails only the resource with an invalid body', async () => {
    // The scripts name an unknown program, so nothing runs.
    const loose = fc.oneof(
      ...(['file-unix', 'directory-unix'] as const).map((type) => bodyOf(type).map((body) => ({ type, body }))),
      bodyOf('script').map((body) => ({ type: 'script' as const, body: { ...body, program: 'nothing' } })),
      fc.jsonValue().map((body) => ({ type: 'of-tomorrow' as ResourceType, body: { body } })),
    );
    // A valid path stays below the test directory.
    const inside = (root: string, body: Record<string, unknown>) =>
      typeof body.path === 'string' && body.path.startsWith('/') ? { ...body, path: `${root}/w${body.path}` } : body;
    await fc.assert(
      fc.asyncProperty(fc.array(loose, { minLength: 1, maxLength: 4 }), async (bodies) => {
        const hostile = bodies.map(({ type, body }, i): ResolvedResource => {
          const resource = file(`${h.root}/${i}`, {}, { id: `hostile${i}` });
          return { ...resource, key: `h${i}`, type, body: inside(h.root, body as never) as never };
        });
        const good = [
          directory(`${h.root}/d`, { mode: '0711' }),
          ...hostile,
          file(`${h.root}/f`, { content: 'ours\n' }, { id: 'f' }),
          file(`${h.root}/needs`, {}, { id: 'needs', depends_on: ['h0'] }),
        ];
        for (const kind of ['plan', 'apply', 'drift'] as const) {
          const sent = operation(kind, kind === 'drift' ? [] : good);
          expect(orchestratorMessageSchema.safeParse(sent).success).toBe(true);
          const { results, finished } = await h.agent.run(sent);
          if (kind === 'drift') continue;
          expect(results).toHaveLength(good.length);
          expect(finished.error ?? '').not.toContain('could not execute the operation');
          for (const result of results)
            if (result.id?.startsWith('hostile') !== true && result.id !== 'needs')
              expect(result.status, result.identity).toMatch(/^(unchanged|changed|would_change)$/);
          for (const { message } of results) expect(message ?? '').not.toContain('please report it');
          const first = results.find(({ id }) => id === 'hostile0');
          if (first?.status === 'failed')
            expect(results.find(({ id }) => id === 'needs')).toMatchObject({ status: 'skipped' });
        }
        expect(readFileSync(`${h.root}/f`, 'utf8')).toBe('ours\n');
        await h.agent.run(operation('apply', []));
        expect(existsSync(`${h.root}/f`)).toBe(false);
        // Acknowledges the reports, because the spool would otherwise fill up.
        h.agent.engine.spool.acknowledge(h.agent.engine.spool.lastSeq());
      }),
      { numRuns: 150 },
    );
  });
});
