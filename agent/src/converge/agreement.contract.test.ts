import { chmodSync, existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import type { ResourceResult } from '@muster/protocol';
import type { ResolvedResource } from '@muster/protocol/module';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { removeDirectory, startAgent, temporaryDirectory } from './test/agent.ts';
import { directory, file, operation, script } from './test/desired.ts';
import { snapshotTree } from './test/tree.ts';

/**
 * Applies random modules to a real file tree. An apply must do exactly what its plan shows, and a removal must leave no
 * trace.
 */

/** `npm run soak -- kill-steps` tries twenty times as many modules. */
const runs = (count: number) => (process.env.MUSTER_EVERY_STEP === undefined ? count : 20 * count);

const paths = ['/a', '/a/b', '/a/b/c', '/a/b/d', '/a/e', '/f', '/g/h/i', '/g/h'];
const mode = fc.constantFrom('0600', '0644', '0755', '4750');
const content = fc.constantFrom('', 'one\n', 'one\ntwo\n', 'no newline', '\u0000binary');

type Make = (root: string) => ResolvedResource;

const fileAt = (path: string): fc.Arbitrary<Make> =>
  fc
    .record({ content, mode, ensure: fc.constantFrom('present' as const, 'absent' as const) }, { requiredKeys: [] })
    .map((body) => (root) => file(root + path, body));
const directoryAt = (path: string): fc.Arbitrary<Make> =>
  fc
    .record(
      {
        mode,
        ensure: fc.oneof(
          { weight: 4, arbitrary: fc.constant('present' as const) },
          { weight: 1, arbitrary: fc.constant('absent' as const) },
        ),
      },
      { requiredKeys: [] },
    )
    .map((body) => (root) => directory(root + path, body));
const linkAt = (path: string): fc.Arbitrary<Make> =>
  fc.constantFrom('/nowhere', 'f').map((symlink) => (root) => file(root + path, { symlink }));

const resourceAt = (path: string): fc.Arbitrary<Make | null> =>
  fc.oneof(
    { weight: 3, arbitrary: fc.constant(null) },
    { weight: 4, arbitrary: fileAt(path) },
    { weight: 4, arbitrary: directoryAt(path) },
  );
const leafAt = (path: string): fc.Arbitrary<Make | null> => fc.oneof(fc.constant(null), linkAt(path), fileAt(path));

const scriptNamed = (
  name: string,
): fc.Arbitrary<(root: string, before: ResolvedResource[]) => ResolvedResource | null> =>
  fc
    .record({
      there: fc.boolean(),
      check: fc.boolean(),
      triggers: fc.array(fc.nat(9), { maxLength: 2 }),
      dependsOn: fc.array(fc.nat(9), { maxLength: 1 }),
    })
    .map(({ there, check, triggers, dependsOn }) => (root, before) => {
      if (!there) return null;
      const marker = `${root}.markers/${name}`;
      const keys = (indices: number[]) => [...new Set(indices.flatMap((i) => before[i]?.key ?? []))];
      return script(
        name,
        { apply: `touch ${marker}`, undo: `rm -f ${marker}`, ...(check ? { check: `test -e ${marker}` } : {}) },
        { rerun_on: keys(triggers), depends_on: keys(dependsOn) },
      );
    });

const desiredSet: fc.Arbitrary<(root: string) => ResolvedResource[]> = fc
  .tuple(
    fc.tuple(...paths.map(resourceAt), leafAt('/s'), leafAt('/a/t')),
    fc.array(fc.nat(20), { minLength: 10, maxLength: 10 }),
    fc.tuple(scriptNamed('x'), scriptNamed('y')),
    fc.nat(10),
  )
  .map(([makers, order, [x, y], at]) => (root) => {
    const resources = makers
      .map((make, i) => ({ resource: make?.(root) ?? null, rank: order[i] as number }))
      .sort((a, b) => a.rank - b.rank)
      .flatMap(({ resource }) => resource ?? []);
    const early = x(root, resources.slice(0, at));
    if (early !== null) resources.splice(at, 0, early);
    const late = y(root, resources);
    return late === null ? resources : [...resources, late];
  });

const initial = fc.subarray(['/a/', '/a/b/', '/a/b/c', '/a/e', '/f', '/g/', '/s@', '/a/b/stranger'], { minLength: 0 });

function lay(root: string, entries: string[]): void {
  for (const entry of entries) {
    const path = `${root}${entry.replace(/[/@]$/, '')}`;
    mkdirSync(path.slice(0, path.lastIndexOf('/')), { recursive: true });
    if (entry.endsWith('/')) mkdirSync(path, { recursive: true });
    else if (entry.endsWith('@')) symlinkSync('/was/here', path);
    else {
      writeFileSync(path, `initial ${entry}\n`);
      chmodSync(path, 0o640);
    }
  }
}

const essence = (results: ResourceResult[]) =>
  results.map(({ identity, action, status, changes, triggered_by, diff, corrective }) => ({
    identity,
    action,
    status: status === 'would_change' ? 'changed' : status,
    fields: changes,
    triggered_by,
    diff,
    corrective,
  }));

/** Random nested paths, some of them undeclared, so that directories often change owners. */
const nested: fc.Arbitrary<(root: string) => ResolvedResource[]> = fc
  .tuple(
    fc.tuple(
      ...['/c', '/c/d', '/c/d/e'].map((path) =>
        fc.constantFrom<Make | null>(null, null, (root) => directory(root + path)),
      ),
      fc.constantFrom<Make | null>(
        null,
        (root) => file(`${root}/c/d/e/j`, { content: 'x' }),
        (root) => file(`${root}/c/d/j`, { content: 'x' }),
        (root) => file(`${root}/c/d/j`, { ensure: 'absent' }),
      ),
    ),
    fc.array(fc.nat(20), { minLength: 4, maxLength: 4 }),
  )
  .map(
    ([makers, order]) =>
      (root) =>
        makers
          .map((make, i) => ({ resource: make?.(root) ?? null, rank: order[i] as number }))
          .sort((a, b) => a.rank - b.rank)
          .flatMap(({ resource }) => resource ?? []),
  );

describe('random modules', () => {
  test('keeps declared directories that move between resources, and removes everything at the end', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(nested, { minLength: 2, maxLength: 5 }), async (sets) => {
        const home = temporaryDirectory();
        const root = `${home}/root`;
        mkdirSync(root);
        mkdirSync(`${home}/data`, { mode: 0o700 });
        const before = snapshotTree(root);
        const agent = await startAgent(`${home}/data`);
        try {
          for (const make of [...sets, () => []]) {
            const desired = make(root);
            const planned = await agent.run(operation('plan', desired));
            const applied = await agent.run(operation('apply', desired));
            expect(essence(applied.results)).toEqual(essence(planned.results));
            expect(applied.finished.status).toBe('succeeded');
            const there = desired.filter(({ body }) => !('ensure' in body && body.ensure === 'absent'));
            for (const { identity } of there) expect(existsSync(identity), identity).toBe(true);
          }
          expect(snapshotTree(root)).toEqual(before);
        } catch (error) {
          const detail = sets.map((make) => make('').map(({ type, body }) => ({ type, ...body })));
          throw new Error(JSON.stringify(detail, null, 1), { cause: error });
        } finally {
          await agent.stop();
          removeDirectory(home);
        }
      }),
      { numRuns: runs(50) },
    );
  });

  // Cases that the random test below rarely generates.
  test.each([
    ['when a file replaces it', (root: string) => file(`${root}/a/b`)],
    ['when a file below it fails', (root: string) => file(`${root}/a/b/x/y`, { owner: 'nobody-of-ours' })],
  ])('removes a created parent directory together with its contents, %s', async (_, late) => {
    const home = temporaryDirectory();
    const root = `${home}/root`;
    mkdirSync(root);
    mkdirSync(`${home}/data`, { mode: 0o700 });
    const agent = await startAgent(`${home}/data`);
    await agent.run(operation('apply', [directory(`${root}/a`), directory(`${root}/a/b/d`)]));
    const planned = await agent.run(operation('plan', [late(root)]));
    const applied = await agent.run(operation('apply', [late(root)]));
    expect(essence(applied.results)).toEqual(essence(planned.results));
    expect(applied.results.map(({ status }) => status)).toEqual(['failed', 'changed', 'changed']);
    expect(snapshotTree(root)).toEqual({ '/': expect.anything() });
    await agent.stop();
    removeDirectory(home);
  });

  test('applies exactly the plan, changes nothing on the second apply, and removes everything', async ({ skip }) => {
    if (process.getuid?.() !== 0) skip('needs root: everyone else is shut out by some of the random modes');
    await fc.assert(
      fc.asyncProperty(initial, fc.array(desiredSet, { minLength: 1, maxLength: 3 }), async (entries, sets) => {
        const home = temporaryDirectory();
        const root = `${home}/root`;
        mkdirSync(root);
        mkdirSync(`${root}.markers`);
        mkdirSync(`${home}/data`, { mode: 0o700 });
        lay(root, entries);
        const before = snapshotTree(root);
        const agent = await startAgent(`${home}/data`);
        let failures = 0;
        try {
          for (const make of [...sets, () => []]) {
            const desired = make(root);
            const untouched = snapshotTree(root);
            const planned = await agent.run(operation('plan', desired));
            expect(snapshotTree(root)).toEqual(untouched);
            const applied = await agent.run(operation('apply', desired));
            expect(essence(applied.results)).toEqual(essence(planned.results));
            failures += applied.finished.summary.failed + applied.finished.summary.skipped;
            const again = await agent.run(operation('apply', desired));
            failures += again.finished.summary.failed;
            const restless = again.results.filter(
              ({ status, type, action }) => status === 'changed' && !(type === 'script' && action === 'run'),
            );
            if (applied.finished.summary.failed === 0) expect(restless).toEqual([]);
          }
          if (failures === 0) expect(snapshotTree(root)).toEqual(before);
        } catch (error) {
          const detail = {
            entries,
            sets: sets.map((make) => make('').map(({ type, body, rerun_on }) => ({ type, ...body, rerun_on }))),
          };
          throw new Error(JSON.stringify(detail, null, 1), { cause: error });
        } finally {
          await agent.stop();
          removeDirectory(home);
        }
      }),
      { numRuns: runs(25) },
    );
  });
});
