import { ApiError } from '@muster/protocol/client';
import { screen } from '@testing-library/react';
import { expect, test, vi } from 'vitest';
import { fakeApi } from '../../test/fake-api.ts';
import { renderPart } from '../../test/render.tsx';
import { Empty, Failure, Problem, SkeletonRows } from './states.tsx';
import { Time } from './time.tsx';

const refusal = (errors: { path: string; message: string }[] = []) =>
  new ApiError({
    ...{ type: 'about:blank', title: 'Invalid', status: 400, code: 'invalid_input', instance: 'request-7' },
    detail: 'the request is not valid',
    errors,
  });

test('announces that content is loading', async () => {
  fakeApi();
  await renderPart(<SkeletonRows rows={4} label="Loading runs" />);
  expect(screen.getByRole('status', { name: 'Loading runs' }).children).toHaveLength(4);
});

test('does not announce placeholders within others', async () => {
  fakeApi();
  await renderPart(<SkeletonRows rows={2} size="entry" label={null} />);
  expect(screen.queryByRole('status')).toBeNull();
});

test('begins an error in a dialog with a capital letter', async () => {
  fakeApi();
  await renderPart(<Problem error={new Error('the orchestrator does not answer')} />);
  expect(screen.getByText('the orchestrator does not answer').className).toContain('first-letter:uppercase');
});

test('explains why the list of replicas is empty and offers an action', async () => {
  fakeApi();
  await renderPart(
    <Empty title="No run yet" action={<button type="button">Start one</button>}>
      Runs appear here.
    </Empty>,
  );
  expect(screen.getByText('No run yet')).toBeTruthy();
  expect(screen.getByText('Runs appear here.')).toBeTruthy();
  expect(screen.getByRole('button', { name: 'Start one' })).toBeTruthy();
});

test('shows the code and request id of an API error, and retries on request', async () => {
  fakeApi();
  const retry = vi.fn();
  const { user } = await renderPart(<Failure error={refusal()} retry={retry} />);
  const text = screen.getByRole('alert').textContent;
  for (const part of ['the request is not valid', 'invalid_input', 'request-7']) expect(text).toContain(part);
  await user.click(screen.getByRole('button', { name: 'Try again' }));
  expect(retry).toHaveBeenCalledOnce();
});

test('offers the list instead of a retry if the item does not exist', async () => {
  fakeApi();
  const missing = new ApiError({
    ...{ type: 'about:blank', title: 'Not found', status: 404, code: 'not_found', instance: 'request-8' },
    detail: 'no run has this id',
  });
  const { user, address } = await renderPart(
    <Failure error={missing} retry={() => {}} list={{ to: '/runs', label: 'All runs' }} item="run" />,
  );
  expect(screen.queryByRole('button', { name: 'Try again' })).toBeNull();
  expect(screen.getByText('Run not found')).toBeTruthy();
  expect(screen.queryByText('not_found')).toBeNull();
  await user.click(screen.getByRole('link', { name: 'All runs' }));
  expect(address()).toBe('/runs');
});

test('lists the errors in a form, and does not repeat a single error', async () => {
  fakeApi();
  await renderPart(
    <>
      <Problem error={refusal([{ path: '/name', message: 'is taken' }])} />
      <Problem error={refusal([{ path: '', message: 'the request is not valid' }])} />
      <Problem error={null} />
    </>,
  );
  expect(screen.getAllByRole('alert').map(({ textContent }) => textContent)).toEqual([
    'the request is not valid/nameis taken',
    'the request is not valid',
  ]);
});

test('shows control characters in an error as codes', async () => {
  fakeApi();
  await renderPart(<Failure error={new Error('bad\u202etext')} />);
  expect(screen.getByRole('alert').textContent).toContain('bad⟨202E⟩text');
});

test('shows when the stale plan was requested', async () => {
  fakeApi();
  const planned_at = Math.floor(Date.now() / 1000) - 7_500;
  const { problem } = refusal();
  await renderPart(<Problem error={new ApiError({ ...problem, status: 409, code: 'plan_stale', planned_at })} />);
  expect(screen.getByRole('alert').textContent).toContain('The plan was requested 2h ago.');
});

test.each([1e300, Number.NaN, 'soon', null])('shows a dash in place of the time %s', async (at) => {
  fakeApi();
  await renderPart(<Time at={at} />);
  expect(screen.getByText('–')).toBeTruthy();
});
