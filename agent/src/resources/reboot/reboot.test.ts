import type { ResolvedResource } from '@muster/protocol/module';
import { expect, test } from 'vitest';
import { bootOf } from '../../host/reboot.ts';
import type { Circumstances } from '../provider/provider.ts';
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
