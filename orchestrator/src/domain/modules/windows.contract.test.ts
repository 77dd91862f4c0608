import { MusterError } from '@muster/protocol';
import { parseSelector } from '@muster/protocol/selector';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { describeAnyDatabase } from '../../../test/databases/databases.ts';
import { newAdmin, openDomain } from '../../../test/domain.ts';
import { listAudit } from '../audit/audit.ts';
import {
  coveredUntil,
  covers,
  createWindow,
  getWindow,
  listWindows,
  openWindows,
  removeWindow,
  updateWindow,
} from './windows.ts';

const code = (promise: Promise<unknown>) =>
  promise.then(
    () => 'done',
    (error: unknown) => (error instanceof MusterError ? error.code : error),
  );
const web = { tags: { role: 'web' }, attributes: { distro: 'debian' } };

describeAnyDatabase('maintenance windows', (fixture) => {
  const open = async () => {
    const domain = await openDomain(fixture);
    const { actor } = await newAdmin(domain);
    return { domain, actor, context: domain.context, now: domain.now() };
  };
  const all = { limit: 100, offset: 0 };

  test('creates, updates, and removes windows, and records an event for each change', async () => {
    const { context, actor, now, domain } = await open();
    const request = { starts_at: now, ends_at: now + 60, reason: 'kernel', selector: 'role=web' };
    const window = await createWindow(context, actor, request);
    expect(window).toEqual({ id: window.id, ...request, created_by: actor.id });
    expect(await updateWindow(context, actor, window.id, { ends_at: now + 30 })).toEqual({
      ...window,
      ends_at: now + 30,
    });
    await updateWindow(context, actor, window.id, { ends_at: now + 30, reason: 'kernel' });
    expect(await updateWindow(context, actor, window.id, { reason: 'disks' })).toMatchObject({
      reason: 'disks',
      ends_at: now + 30,
    });
    expect(await listWindows(context, all)).toEqual({ items: [await getWindow(context, window.id)], more: false });
    await removeWindow(context, actor, window.id);
    expect(await code(getWindow(context, window.id))).toBe('window_not_found');
    expect(await code(removeWindow(context, actor, window.id))).toBe('window_not_found');
    expect(await code(updateWindow(context, actor, window.id, { reason: 'x' }))).toBe('window_not_found');
    await new Promise((resolve) => setImmediate(resolve));
    expect(domain.hints.filter(({ type }) => type === 'windows_changed')).toHaveLength(4);
    const { events } = await listAudit(context, { category: 'window' });
    expect(events.map(({ event_type, metadata }) => [event_type, metadata]).reverse()).toEqual([
      ['window.created', { starts_at: now, ends_at: now + 60, selector: 'role=web' }],
      ['window.updated', { ends_at: now + 30 }],
      ['window.updated', { reason: 'disks' }],
      ['window.removed', { starts_at: now, ends_at: now + 30, selector: 'role=web' }],
    ]);
  });

  test('warns about a selector on attributes', async () => {
    const { context, actor, now } = await open();
    const request = { starts_at: now, ends_at: now + 60, reason: 'rack 7', selector: 'role=web attr.rack=7' };
    const window = await createWindow(context, actor, request);
    expect(window.warnings).toEqual([expect.stringContaining('attr.rack, which agents report themselves')]);
    expect(await getWindow(context, window.id)).toEqual(window);
    const byTags = await createWindow(context, actor, { ...request, selector: 'role=web' });
    expect(byTags.warnings).toBeUndefined();
  });

  test('refuses a window that ends before it starts, or has an invalid selector', async () => {
    const { context, actor, now } = await open();
    const create = (more: object) =>
      code(createWindow(context, actor, { starts_at: now, ends_at: now + 60, reason: 'x', ...more }));
    expect(await create({ ends_at: now })).toBe('invalid_input');
    expect(await create({ ends_at: now - 1 })).toBe('invalid_input');
    expect(await create({ selector: 'role=' })).toBe('selector_invalid');
    const { id } = await createWindow(context, actor, { starts_at: now, ends_at: now + 60, reason: 'x' });
    expect(await code(updateWindow(context, actor, id, { ends_at: now }))).toBe('invalid_input');
    expect((await getWindow(context, id)).ends_at).toBe(now + 60);
  });

  test('opens a window for matching agents when it starts, and closes it when it ends', async () => {
    const { context, actor, now, domain } = await open();
    const window = (starts_at: number, ends_at: number, selector?: string) =>
      createWindow(context, actor, { starts_at, ends_at, reason: 'x', selector });
    await window(now + 10, now + 20, 'role=web');
    await window(now + 10, now + 20, '');
    await window(now - 20, now - 10);
    const db = { tags: { role: 'db' }, attributes: {} };
    const at = async (time: number) => covers(await openWindows(context, time), web);
    expect([await at(now + 9), await at(now + 10), await at(now + 19), await at(now + 20)]).toEqual([
      false,
      true,
      true,
      false,
    ]);
    const open10 = await openWindows(context, now + 10);
    expect(open10).toHaveLength(2);
    expect(covers(open10, db)).toBe(false);
    expect(await openWindows(context)).toEqual([]);
    domain.clock.advance(10_000);
    expect(await openWindows(context)).toHaveLength(2);
    await window(now, now + 20);
    expect(covers(await openWindows(context), db)).toBe(true);
  });

  test('paginates the list of windows, latest start first', async () => {
    const { context, actor, now } = await open();
    for (let i = 0; i < 5; i++)
      await createWindow(context, actor, { starts_at: now + (i % 3), ends_at: now + 60, reason: `${i}` });
    const page = async (limit: number, offset: number) => {
      const { items, more } = await listWindows(context, { limit, offset });
      return [items.map(({ reason }) => reason).join(''), more];
    };
    expect(await page(100, 0)).toEqual(['24130', false]);
    expect([await page(2, 0), await page(2, 2), await page(2, 4), await page(2, 6)]).toEqual([
      ['24', true],
      ['13', true],
      ['0', false],
      ['', false],
    ]);
    expect(await page(0, 0)).toEqual(['', false]);
    expect(await page(5, 0)).toEqual(['24130', false]);
  });
});

describe('open windows', () => {
  const all = { selector: null, ends_at: 9 };
  const read = (text: string, ends_at = 9) => {
    const parsed = parseSelector(text);
    return { selector: parsed.ok ? parsed.selector : null, ends_at };
  };
  test('matches no agent without a window, and every agent if a window has no selector', () => {
    expect(covers([], web)).toBe(false);
    expect(covers([all], web)).toBe(true);
    expect(covers([read('')], web)).toBe(false);
    expect(covers([read('role=db'), read('attr.distro=debian')], web)).toBe(true);
  });
  test('returns when the last window that matches the agent closes', () => {
    expect(coveredUntil([read('role=db', 30), read('attr.distro=debian', 20), read('role=web', 10)], web)).toBe(20);
    expect(coveredUntil([read('role=db', 30)], web)).toBeNull();
  });
  test('still matches an agent when an additional window is open', () => {
    const one = fc
      .constantFrom<[string]>([''], ['role=web'], ['role=db'], ['!role'], ['attr.distro'])
      .map(([text]) => read(text));
    fc.assert(
      fc.property(fc.array(one), one, (windows, another) => {
        if (covers(windows, web)) expect(covers([...windows, another], web)).toBe(true);
      }),
    );
  });
});
