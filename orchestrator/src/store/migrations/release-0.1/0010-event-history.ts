import type { Migration } from '../migration.ts';

/**
 * Records the sequence number of the last event before this migration. Events up to this number are added to the chain
 * but do not cause notifications.
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
