import type { ResolvedResource } from '@muster/protocol/module';
import { describe, expect, test } from 'vitest';
import { parseServices } from '../../host/systemd/openrc.ts';
import { diffRc, diffRcRemoval, type SeenRc } from './diff.ts';

const service = (body: object): ResolvedResource => ({
  key: 'service-openrc:web',
  module: 'site',
  id: null,
  name: null,
  type: 'service-openrc',
  identity: 'web',
  body: { name: 'web', ...body },
  depends_on: [],
  reload_on: [],
  restart_on: [],
  rerun_on: [],
  sensitive_fields: [],
});
const stopped: SeenRc = { state: 'stopped', levels: [], levelExists: true, startedAt: null };
const started: SeenRc = { ...stopped, state: 'started', levels: ['default'], startedAt: '1:2' };
const circumstances = { purpose: 'apply', restartBy: [], succeeded: null } as const;
const fields = (seen: SeenRc, body: object, more = {}) =>
  diffRc(service(body), seen, { ...circumstances, ...more }).changes.map(
    ({ field, from, to }) => `${field} ${from} ${to}`,
  );

test('parses the output of rc-status, and ignores text around the states', () => {
  const text =
    ' web        [  started 00:00:12 (0) ]\n hwclock.sh   [  stopped  ]\n db [  crashed  ]\n\nDynamic Runlevel: x\n';
  expect([...parseServices(text)]).toEqual([
    ['web', 'started'],
    ['hwclock.sh', 'stopped'],
    ['db', 'crashed'],
  ]);
});

describe('an OpenRC service', () => {
  test('changes only the declared fields in which a service differs', () => {
    expect(fields(stopped, { enabled: true, running: true })).toEqual(['enabled false true', 'running false true']);
    expect(fields(started, { enabled: false, running: false })).toEqual(['enabled true false', 'running true false']);
    expect(fields(started, { enabled: true, running: true })).toEqual([]);
    expect(fields(started, {})).toEqual([]);
    expect(fields(started, { enabled: true, runlevel: 'boot' })).toEqual(['enabled false true']);
    expect(fields(started, { enabled: false, runlevel: 'boot' })).toEqual([]);
  });

  test('treats a crashed service as neither running nor stopped', () => {
    const crashed = { ...started, state: 'crashed' };
    expect(fields(crashed, { running: true })).toEqual(['running false true']);
    expect(fields(crashed, { running: false })).toEqual(['running false false']);
  });

  test('removes the service only from the previously declared run level', () => {
    const succeeded = service({ enabled: true, running: true });
    const seen = { ...started, levels: ['boot', 'default'] };
    expect(fields(seen, { enabled: true, runlevel: 'nonetwork' }, { succeeded })).toEqual([
      'runlevel default nonetwork',
    ]);
    expect(fields(seen, { enabled: true, runlevel: 'nonetwork' })).toEqual(['enabled false true']);
  });

  test('restarts a running service when triggered, unless it is declared stopped', () => {
    const restartBy = ['conf'];
    const action = (seen: SeenRc, body: object) => diffRc(service(body), seen, { ...circumstances, restartBy }).action;
    expect(action(started, {})).toBe('restart');
    expect(action(stopped, {})).toBe('none');
    expect(action(stopped, { running: true })).toBe('update');
    expect(action(started, { running: false })).toBe('update');
  });

  test('waits for a missing service in an apply, but not in a drift check', () => {
    const missing = { ...stopped, state: null };
    expect(diffRc(service({ running: true }), missing, circumstances)).toMatchObject({
      action: 'update',
      awaits: [{ kind: 'units', message: expect.stringContaining('/etc/init.d') }],
    });
    expect(diffRc(service({ running: true }), missing, { ...circumstances, purpose: 'drift' })).not.toHaveProperty(
      'awaits',
    );
    expect(() =>
      diffRc(service({ enabled: true, runlevel: 'x' }), { ...stopped, levelExists: false }, circumstances),
    ).toThrow('there is no run level x');
  });

  test('restores the original run levels and running state on removal', () => {
    const before = { levels: { default: false, boot: true }, running: false };
    expect(diffRcRemoval(service({}), before, started)).toMatchObject({
      action: 'remove',
      changes: [
        { field: 'runlevel', from: 'default', to: 'boot' },
        { field: 'running', from: 'true', to: 'false' },
      ],
    });
    expect(diffRcRemoval(service({}), { levels: { default: true }, running: true }, started).action).toBe('none');
    expect(diffRcRemoval(service({}), before, { ...stopped, state: null }).action).toBe('none');
  });
});
