import type { Migration } from './migration.ts';

/**
 * The number of the last event that exists before notifications do: earlier events get their places in the chain, but
 * notify no one.
 */
export const eventHistory: Migration = {
  version: 10,
  name: 'event-history',
  statements: ({ db }) => [
    db
      .insertInto('audit_chain')
      .columns(['name', 'place', 'hash'])
      .expression(
        db
          .selectFrom('audit_events')
          .select((e) => [
            e.val('history' as const).as('name'),
            e.fn.coalesce(e.fn.max('seq'), e.lit(0)).as('place'),
            e.val('0'.repeat(64)).as('hash'),
          ])
          .where('place', 'is', null),
      ),
  ],
};
