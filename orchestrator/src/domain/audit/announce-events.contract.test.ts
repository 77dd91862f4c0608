import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { happen } from '../../../test/audit.ts';
import { describeDatabases } from '../../../test/databases/databases.ts';
import { openDomain } from '../../../test/domain.ts';
import { putSetting } from '../../store/queries/settings.ts';
import { statement } from '../../store/transaction.ts';
import { announcingEvents } from './announce-events.ts';

describeDatabases('announcement of events', (fixture) => {
  test('publishes one hint for events committed together, and none for other writes', async () => {
    const domain = await openDomain(fixture);
    const { hints } = domain;
    const context = { ...domain.context, db: announcingEvents(domain.db, domain.context.bus) };
    const announcements = () => hints.filter(({ type }) => type === 'audited').length;
    await context.db.write({ name: 'test', statements: [statement(putSetting, { key: 'k', value: '1' })] });
    await nextTurn();
    expect(announcements()).toBe(0);
    await happen({ ...domain, context }, 1);
    await nextTurn();
    expect(announcements()).toBe(1);
    await happen({ ...domain, context }, 3);
    await nextTurn();
    expect(announcements()).toBe(2);
    const write = domain.db.write;
    domain.db.write = () => Promise.reject(new Error('away'));
    await expect(happen({ ...domain, context }, 1)).rejects.toThrow('away');
    domain.db.write = write;
    await nextTurn();
    expect(announcements()).toBe(2);
  });
});
