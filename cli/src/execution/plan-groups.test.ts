import type { Run } from '@muster/protocol/http';
import stringWidth from 'string-width';
import { expect, test } from 'vitest';
import { operation, result, style, variety } from '../../test/examples.ts';
import { renderOperation } from '../text/plan-text.ts';
import { operationLines } from './apply-view.ts';
import { groupPlans, namesText, renderPlans } from './plan-groups.ts';

const of = (name: string, ...resources: Parameters<typeof operation>[0]) => ({ name, operation: operation(resources) });
const create = result({ action: 'create', status: 'would_change' });
const remove = result({ action: 'remove', status: 'would_change' });

test('groups plans that differ only in durations, largest group first', () => {
  const slower = { ...create, duration_ms: 99 };
  const groups = groupPlans([of('a', remove), of('b', create), of('c', slower), of('d', create, remove)]);
  expect(groups.map(({ names }) => names)).toEqual([['b', 'c'], ['a'], ['d']]);
});

test('groups plans that differ only in the name of their agent, and prints a note', () => {
  const on = (name: string) => ({
    ...of(name, { ...create, diff: `--- a\n+++ b\n@@ -1 +1 @@\n-x\n+server_name ${name}.example.net\n` }),
    result: { node_id: name, name, operation_id: name, status: 'succeeded' as const, error: null },
  });
  const plans = ['web-1', 'web-2', 'db'].map(on);
  expect(groupPlans(plans).map(({ names }) => names)).toEqual([['web-1', 'web-2', 'db']]);
  const summary = { ...{ total: 1, unchanged: 0, changed: 1, removed: 0, failed: 0, skipped: 0 } };
  const run = { results: plans.map(({ result }) => ({ ...result, summary })) } as unknown as Run;
  const operations = new Map(plans.map(({ name, operation }) => [name, operation]));
  expect(renderPlans(run, operations, style())).toContain('(shown for db; the others differ only in their name)');
});

test('lists the first names of many agents, or all names with -v, and escapes them visibly', () => {
  const names = Array.from({ length: 12 }, (_, at) => `web-${at}`);
  expect(namesText(names, { verbose: false })).toBe('12 agents: web-0, web-1, web-2, web-3, web-4 and 7 more');
  expect(namesText(names, { verbose: true })).toContain('web-11');
  expect(namesText(['\u001b[2J'], { verbose: false })).toBe('\\x1b[2J');
});

const long = result({
  action: 'update',
  status: 'would_change',
  identity: '/etc/東京/motd',
  changes: [{ field: 'content_type', from: `${'x'.repeat(300)}old`, to: `${'x'.repeat(300)}new` }],
  diff: `--- a\n+++ b\n@@ -1 +1 @@\n-${'東'.repeat(200)}\n+\u001b[2Jnew\n`,
});

test.each([40, 80, 200])('fits a plan into %i columns, and shows where long values differ', (width) => {
  for (const colored of [false, true]) {
    const text = renderOperation(operation([...variety, long]), 'web-1', style({ width, colored }));
    for (const line of text.split('\n')) expect(stringWidth(line), line).toBeLessThanOrEqual(width);
    expect(text).toMatch(/…x*old → …x*new/);
    expect(text).not.toContain('\u001b[2J');
    expect(text.includes('\u001b')).toBe(colored);
  }
});

test('shows finished, current, and upcoming resources of a running apply even in a small window', () => {
  const { color } = style();
  const plan = operation(variety);
  const done = { ...(plan.resources[0] ?? create), status: 'changed' as const };
  const lines = (rows: number) =>
    operationLines(
      {
        agent: 'web-1',
        doing: 'applying',
        operation: operation([done], { kind: 'apply', status: 'running' }),
        plan,
        output: 'step 4 of 8',
      },
      { spinner: '*', seconds: 3, columns: 80, rows },
      color,
    );
  expect(lines(24)[0]).toMatch(/^\* web-1: applying [█░]{20} 1 of \d+ 3s$/);
  expect(lines(24).slice(1, 4)).toEqual([
    '  + created   file-unix /etc/site.conf (site/conf)',
    '  * file-unix /etc/motd',
    '      step 4 of 8',
  ]);
  expect(lines(24)[4]).toBe('  · directory-unix /srv');
  expect(lines(8).length).toBeLessThanOrEqual(8);
});
