import type { ResolvedResource } from '@muster/protocol/module';
import { expect, test } from 'vitest';
import { bootOf } from '../../host/reboot.ts';
import type { Circumstances, Difference, Machine } from '../provider/provider.ts';
import { reboot } from './reboot.ts';

const declared = (body: object = {}) =>
  ({ type: 'reboot', identity: 'kernel', body: { name: 'kernel', ...body } }) as ResolvedResource<'reboot'>;
const because = (...rerunBy: string[]) => ({ purpose: 'apply', rerunBy }) as unknown as Circumstances;
const seen = (isNeeded: boolean) => ({ boot: 'a/1', isNeeded });

test('reboots if the system needs it, or a resource changed', () => {
  const needed = { action: 'run', changes: [{ field: 'needed', from: 'yes', to: 'no' }] };
  expect(reboot.diff(declared(), seen(true), because())).toMatchObject(needed);
  expect(reboot.diff(declared(), seen(false), because()).action).toBe('none');
  expect(reboot.diff(declared(), seen(false), because('kernel'))).toMatchObject({ action: 'run', changes: [] });
});

test('with `triggered`, reboots only if a resource changed', () => {
  expect(reboot.diff(declared({ when: 'triggered' }), seen(true), because()).action).toBe('none');
  expect(reboot.diff(declared({ when: 'triggered' }), seen(true), because('kernel')).action).toBe('run');
});

test('with `window_only`, waits for a maintenance window that stays open until the reboot', () => {
  const left = (windowMs: number) => ({ ...seen(true), windowMs });
  const inWindow = (delay: number) => declared({ window_only: true, delay });
  expect(reboot.diff(inWindow(0), left(0), because()).waits).toMatch(/no maintenance window of this agent is open/);
  expect(reboot.diff(inWindow(0), left(1), because()).waits).toBeUndefined();
  expect(reboot.diff(inWindow(60), left(60_000), because()).waits).toMatch(/closes before its `delay` ends/);
  expect(reboot.diff(inWindow(60), left(60_001), because()).waits).toBeUndefined();
  expect(reboot.diff(inWindow(0), { ...seen(false), windowMs: 0 }, because('kernel')).waits).toMatch(/is open/);
  expect(reboot.diff(inWindow(0), { ...seen(false), windowMs: 0 }, because())).toMatchObject({ action: 'none' });
});

test('shows a reboot that waits for a maintenance window as drift', () => {
  const drift = { ...because(), purpose: 'drift' } as Circumstances;
  const found = reboot.diff(declared({ window_only: true }), { ...seen(true), windowMs: 0 }, drift);
  expect(found).toEqual({ action: 'run', changes: [{ field: 'needed', from: 'yes', to: 'no' }], diff: null });
});

test('does not reboot after the maintenance window closes', async () => {
  const machine = { windowEnd: 60, clock: { now: () => 60_000, monotonic: () => 0 }, stop: { aborted: false } };
  const resource = declared({ window_only: true });
  const difference: Difference = { action: 'run', changes: [], diff: null };
  const items = [{ kind: 'apply' as const, resource, seen: seen(true), difference, before: null }];
  const given = { ...machine, cancelled: () => false } as unknown as Machine;
  expect(await reboot.together?.(items, given)).toEqual([
    { failure: 'the maintenance window closed before the reboot' },
  ]);
});

test('finishes when the machine has booted again', () => {
  const original = reboot.diff(declared(), seen(true), because());
  const isDone = (boot: string) =>
    reboot.wasApplied?.(declared(), reboot.inBrief(seen(true)), { boot, isNeeded: true }, original);
  expect(isDone('a/1')).toBe(false);
  expect(isDone('a/2')).toBe(true);
  expect(isDone('b/1')).toBe(true);
});

test('distinguishes boots by the boot id and the start time of the first process', () => {
  const status = (start: number) => `1 (a ) b) S 0 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 ${start} 170 30`;
  expect(bootOf('id', status(42))).toBe('id/42');
});
