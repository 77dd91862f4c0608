import { openPostgres } from '../../src/store/postgres/postgres.ts';
import { defineQuery } from '../../src/store/query.ts';
import { openSqlite } from '../../src/store/sqlite/sqlite.ts';
import { statement } from '../../src/store/transaction.ts';
import { say } from '../say.ts';

/**
 * Writes transactions of two rows each, many at a time, and prints the number of each acknowledged transaction. Never
 * ends.
 */
const [kind, address] = process.argv.slice(2);
const now = () => 1;
const database =
  kind === 'sqlite'
    ? await openSqlite({ file: address!, now, onFatal: (reason) => void process.stderr.write(`${reason}\n`) })
    : await openPostgres({ url: address!, now });

const put = defineQuery('settings/put', (db, p: { key: string }) =>
  db.insertInto('settings').values({ key: p.key, value: 'x'.repeat(500) }),
);

let next = 0;
async function writeOn(): Promise<never> {
  for (;;) {
    const number = next++;
    await database.write({
      name: 'settings/pair',
      statements: [statement(put, { key: `${number}-a` }), statement(put, { key: `${number}-b` })],
    });
    say(`${number}\n`);
  }
}

await Promise.all(Array.from({ length: 20 }, writeOn));
