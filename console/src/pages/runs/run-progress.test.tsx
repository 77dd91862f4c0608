import { expect, test } from 'vitest';
import { fakeApi } from '../../../test/fake-api.ts';
import { renderPart } from '../../../test/render.tsx';
import { StatusDot } from '../../parts/work-status.tsx';
import type { RunResult } from './run-groups.ts';
import { OutcomeBar, RunProgress } from './run-progress.tsx';

const summary = { total: 1, unchanged: 1, changed: 0, removed: 0, failed: 0, skipped: 0 };
const result = (over: Partial<RunResult>): RunResult =>
  ({ node_id: 'a', name: null, operation_id: 'b', status: 'succeeded', error: null, summary, ...over }) as RunResult;

async function barOf(results: readonly RunResult[], kind: 'plan' | 'apply') {
  fakeApi();
  await renderPart(<OutcomeBar results={results} kind={kind} className="h-1" />);
  return [...document.querySelectorAll<HTMLElement>('[aria-hidden] > div')].map(({ className, style }) => [
    className.split(' ')[0],
    style.width,
  ]);
}

test('colors only the share of agents that failed', async () => {
  expect(await barOf([result({ status: 'failed' }), ...Array(3).fill(result({}))], 'apply')).toEqual([
    ['bg-good/45', '75%'],
    ['bg-bad', '25%'],
  ]);
});

test.each([
  ['plan', 'bg-bad'],
  ['apply', 'bg-good'],
] as const)('highlights removals only in a plan, which an operator can still refuse: %s', async (kind, color) => {
  expect(await barOf([result({ summary: { ...summary, removed: 1 } })], kind)).toEqual([[color, '100%']]);
});

test.each(['failed', 'cancelled'] as const)('marks %s agents like the status', async (status) => {
  fakeApi();
  await renderPart(
    <>
      <StatusDot status={status} />
      <RunProgress
        results={[result({ status })]}
        kind="apply"
        canaries={new Set()}
        chosen=""
        onChoose={() => undefined}
      />
    </>,
  );
  const [dot, mark] = [...document.querySelectorAll('span.size-2')].map(({ classList }) =>
    [...classList].filter((name) => /^(bg|rounded|rotate|scale)/.test(name)).toSorted(),
  );
  expect(mark).toEqual(dot);
});
