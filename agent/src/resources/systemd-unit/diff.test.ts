import type { ResolvedResource } from '@muster/protocol/module';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseUnits, type UnitState } from '../../host/systemd/systemd.ts';
import type { Difference } from '../provider/provider.ts';
import { serviceSystemd } from '../service-systemd/service-systemd.ts';
import { diffService } from './diff.ts';
import { diffRemoval } from './removal.ts';
import type { SeenService, ServiceBefore } from './seen.ts';
import type { Body } from './unit-file.ts';

const service = (body: Partial<Body>): ResolvedResource<'service-systemd'> => ({
  key: 'service-systemd:web',
  module: 'site',
  id: null,
  name: null,
  type: 'service-systemd',
  identity: 'web',
  body: { name: 'web', ...body },
  depends_on: [],
  reload_on: [],
  restart_on: [],
  rerun_on: [],
  sensitive_fields: [],
});

const shown = (values: Record<string, string>): string =>
  Object.entries({
    Type: 'simple',
    Id: 'web.service',
    LoadState: 'loaded',
    ActiveState: 'active',
    SubState: 'running',
    UnitFileState: 'enabled',
    FragmentPath: '/usr/lib/systemd/system/web.service',
    CanReload: 'yes',
    Result: 'success',
    InvocationID: 'first',
    StateChangeTimestampMonotonic: '100',
    ...values,
  })
    .map(([name, value]) => `${name}=${value}\n`)
    .join('');

const unit = (values: Record<string, string> = {}): UnitState =>
  parseUnits(shown(values), ['web.service']).get('web.service') as UnitState;
const absent = { found: { type: 'absent' }, ownership: { ownerName: null, groupName: null } } as const;
const seen = (values: Record<string, string> = {}): SeenService => ({
  unit: unit(values),
  file: null,
  dropIn: { seen: absent, says: null, isOurs: false },
});
const circumstances = { purpose: 'apply', reloadBy: [], restartBy: [], succeeded: null } as const;
const stopped = { ActiveState: 'inactive', SubState: 'dead', InvocationID: '' };

test('assigns the output of systemctl to units in the order of their names in the query', () => {
  const units = parseUnits(`${shown({})}\n${shown({ Id: 'db.service', NRestarts: '3', Job: '12' })}`, [
    'web.service',
    'other.service',
  ]);
  expect(units.get('web.service')).toMatchObject({ active: 'active', canReload: true, hasJob: false, hasEnded: false });
  expect(units.get('other.service')).toMatchObject({ id: 'db.service', restarts: 3, hasJob: true });
  expect(() => parseUnits(shown({}), ['web.service', 'db.service'])).toThrow('1 units instead of 2');
});

describe('a trigger', () => {
  const due = fc.subarray(['conf', 'package']);

  test('restarts rather than reloads a triggered unit, and does not start a stopped unit', () => {
    fc.assert(
      fc.property(
        due,
        due,
        fc.boolean(),
        fc.boolean(),
        fc.constantFrom(undefined, true, false),
        (reloadBy, restartBy, runs, canReload, running) => {
          const now = seen({ ...(runs ? {} : stopped), CanReload: canReload ? 'yes' : 'no' });
          const body = running === undefined ? {} : { running };
          const { action, changes } = diffService(service(body), now, { ...circumstances, reloadBy, restartBy });
          const moved = changes.map(({ field }) => field);
          if (!runs) expect([action, moved]).toEqual(running === true ? ['update', ['running']] : ['none', []]);
          else if (running === false) expect([action, moved]).toEqual(['update', ['running']]);
          else if (restartBy.length > 0) expect(action).toBe('restart');
          else if (reloadBy.length > 0) expect(action).toBe(canReload ? 'reload' : 'restart');
          else expect(action).toBe('none');
        },
      ),
    );
  });

  test('detects from the state of a unit that its restart or reload finished before the agent was killed', () => {
    const wasApplied = (now: Record<string, string>, action: Difference['action'], body: Partial<Body> = {}) =>
      serviceSystemd.wasApplied?.(service(body), serviceSystemd.inBrief(seen()), seen(now), {
        action,
        changes: [],
        diff: null,
      });
    expect(wasApplied({}, 'restart')).toBe(false);
    expect(wasApplied({ StateChangeTimestampMonotonic: '200' }, 'restart')).toBe(false);
    expect(wasApplied({ InvocationID: 'second' }, 'restart')).toBe(true);
    expect(wasApplied({}, 'reload')).toBe(false);
    expect(wasApplied({ StateChangeTimestampMonotonic: '200' }, 'reload')).toBe(true);
    expect(wasApplied({ ...stopped, InvocationID: 'second' }, 'restart', { running: true })).toBe(false);
  });
});

describe('enablement of a unit', () => {
  const enabled = (UnitFileState: string, declared: boolean) =>
    diffService(service({ enabled: declared }), seen({ UnitFileState }), circumstances);

  test.each(['disabled', 'enabled-runtime', 'linked', 'masked'])(
    'treats a unit in the state %s as not enabled',
    (state) => {
      expect(enabled(state, true).changes).toEqual([{ field: 'enabled', from: 'false', to: 'true' }]);
      expect(enabled(state, false).action).toBe('none');
    },
  );

  test.each(['static', 'indirect', 'generated'])(
    'reports that a unit in the state %s cannot be enabled or disabled',
    (state) => {
      for (const declared of [true, false])
        expect(enabled(state, declared)).toMatchObject({
          action: 'none',
          message: expect.stringContaining(`is ${state}`),
        });
    },
  );
});

test('disables a unit whose file was deleted while a link enabled it', () => {
  // systemd does not report a state for such a unit, but the agent finds the link.
  const deleted = seen({ ...stopped, LoadState: 'not-found', UnitFileState: 'enabled' });
  const created = { existed: false, file: null, dropIn: null, dropInDirectory: false, enabled: null, running: null };
  const back = (before: Partial<ServiceBefore>) =>
    diffRemoval(service({ enabled: true }), { ...created, ...before }, deleted, { read: () => null });
  expect(back({}).action).toBe('remove');
  expect(back({ existed: true, enabled: 'disabled' }).changes).toEqual([
    { field: 'enabled', from: 'true', to: 'false' },
  ]);
  expect(back({ existed: true, enabled: 'enabled' }).action).toBe('none');
  const body = { exec_start: '/bin/web', enabled: false };
  expect(diffService(service(body), deleted, circumstances).changes).toContainEqual({
    field: 'enabled',
    from: 'true',
    to: 'false',
  });
  expect(diffService(service({ ensure: 'absent' }), deleted, circumstances).action).toBe('none');
});

test('starts a oneshot unit once, and again only after a failure or a change to its declaration', () => {
  const once = { ...stopped, Type: 'oneshot' };
  const action = (values: Record<string, string>, succeeded: ResolvedResource | null = null) =>
    diffService(service({ running: true }), seen({ ...once, ...values }), { ...circumstances, succeeded }).action;
  expect(action({})).toBe('update');
  expect(action({}, service({ running: true }))).toBe('none');
  expect(action({}, service({ running: true, environment: {} }))).toBe('update');
  expect(action({ InactiveEnterTimestampMonotonic: '5' })).toBe('none');
  expect(action({ ActiveState: 'failed', Result: 'exit-code' }, service({ running: true }))).toBe('update');
});

test('refuses to unmask a masked unit, and waits for a missing one', () => {
  expect(() =>
    diffService(service({ running: true }), seen({ ...stopped, LoadState: 'masked' }), circumstances),
  ).toThrow('is masked');
  const missing = seen({ ...stopped, LoadState: 'not-found', UnitFileState: '' });
  expect(diffService(service({ enabled: false }), missing, circumstances)).toMatchObject({
    action: 'update',
    changes: [{ field: 'enabled', from: null, to: 'false' }],
    awaits: [{ kind: 'units', message: expect.stringContaining('there is no unit web.service') }],
  });
});
