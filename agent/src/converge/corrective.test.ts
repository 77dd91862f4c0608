import { chmodSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import type { ResolvedResource } from '@muster/protocol/module';
import { expect, test } from 'vitest';
import { decide } from './plan/plan.ts';
import { StepsState } from './plan/steps-state.ts';
import { file, operation, script } from './test/desired.ts';
import { useAgent } from './test/harness.ts';

/** Verifies that repairs of drift are distinguished from intended changes. */

const h = useAgent();
const correctiveOf = (results: { id: string | null; status: string; corrective: boolean }[]) =>
  Object.fromEntries(
    results.filter(({ status }) => status !== 'unchanged').map((result) => [result.id, result.corrective]),
  );
const f = (body: object, id = 'f') => file(`${h.root}/${id}`, { mode: '0644', ...body }, { id });
const apply = async (...desired: ReturnType<typeof file>[]) => await h.agent.run(operation('apply', desired));

test('marks the repair of a manual change as corrective, but not a change to the declaration', async () => {
  await apply(f({ content: 'one\n' }), f({ content: 'one\n' }, 'g'), f({ content: 'one\n' }, 'h'));
  chmodSync(`${h.root}/f`, 0o600);
  chmodSync(`${h.root}/h`, 0o600);
  const outcome = await apply(f({ content: 'one\n' }), f({ content: 'two\n' }, 'g'), f({ content: 'two\n' }, 'h'));
  expect(correctiveOf(outcome.results)).toEqual({ f: true, g: false, h: false });
});

test('does not treat the remains of a failed apply as drift', async () => {
  await apply(f({ content: 'one\n' }));
  // The unknown owner makes this apply fail before it sets the mode.
  const failed = await apply(f({ content: 'two\n', owner: 'nobody-of-that-name' }));
  expect(failed.finished.status).toBe('failed');
  writeFileSync(`${h.root}/f`, 'half\n');
  const back = await apply(f({ content: 'one\n' }));
  expect(correctiveOf(back.results)).toEqual({ f: false });
  writeFileSync(`${h.root}/f`, 'by hand\n');
  expect(correctiveOf((await apply(f({ content: 'one\n' }))).results)).toEqual({ f: true });
  expect(readFileSync(`${h.root}/f`, 'utf8')).toBe('one\n');
});

test('marks a script as corrective if its check fails, but not if it always runs or is triggered', async () => {
  const desired = () => [
    f({ content: 'one\n' }),
    script('checked', { check: `test -e ${h.root}/there`, apply: `touch ${h.root}/there` }, { id: 'checked' }),
    script('always', { apply: 'true' }, { id: 'always' }),
    script('follows', { apply: 'true' }, { id: 'follows', rerun_on: [f({}).key] }),
  ];
  expect(correctiveOf((await apply(...desired())).results)).toMatchObject({ checked: false, follows: false });
  rmSync(`${h.root}/there`);
  writeFileSync(`${h.root}/f`, 'by hand\n');
  const outcome = await apply(...desired());
  expect(correctiveOf(outcome.results)).toEqual({ f: true, checked: true, always: false, follows: false });
});

test('treats the manual removal of a package as drift, but not a newer available version', () => {
  const body = { name: 'nginx', version: 'latest' };
  const declared: ResolvedResource = {
    ...file('/x'),
    type: 'package-apt',
    key: 'package-apt:nginx',
    identity: 'nginx',
    body,
  };
  const record = { resource: declared, succeeded: declared, before: null, ordinal: 1 };
  const step = { position: 0, kind: 'apply', resource: declared, record } as const;
  const seen = (state: string, version: string | null) => ({
    seen: {
      ...{ state, version, whole: true, held: false, auto: false },
      offer: { candidate: '2.0', offered: ['2.0'], providers: [], trouble: null },
    },
  });
  const judged = (purpose: 'plan' | 'drift', ...found: Parameters<typeof seen>) =>
    decide(step, seen(...found), new StepsState(purpose, new Map(), [step]), { read: () => null });
  expect(judged('plan', 'installed', '1.0')).toMatchObject({ verdict: 'act', corrective: false });
  expect(judged('drift', 'installed', '1.0')).toMatchObject({ verdict: 'none' });
  expect(judged('plan', 'not-installed', null)).toMatchObject({ verdict: 'act', corrective: true });
  expect(judged('drift', 'not-installed', null)).toMatchObject({ verdict: 'act' });
});
