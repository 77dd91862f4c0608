import { monotonicFactory } from 'ulid';
import { systemClock } from '../../lib/src/clock.ts';
import { createInProcessBus } from '../src/bus/in-process.ts';
import { createDeliver } from '../src/deliver/deliver.ts';
import { channelsToSend } from '../src/domain/notifications/outbox.ts';
import type { Context } from '../src/domain/shared/context.ts';
import { createLease } from '../src/domain/shared/leases.ts';
import { SecretKeys } from '../src/identity/secret-keys.ts';
import { startOutbox } from '../src/schedule/outbox.ts';
import { openPostgres } from '../src/store/postgres/postgres.ts';
import { openSqlite } from '../src/store/sqlite/sqlite.ts';

/** Sends the messages in a database's outbox, and prints `empty` when no message is left. Never ends. */
const [kind, address] = process.argv.slice(2);
const now = () => Math.floor(Date.now() / 1000);
const db =
  kind === 'sqlite'
    ? await openSqlite({ file: address!, now, onFatal: (reason) => void process.stderr.write(`${reason}\n`) })
    : await openPostgres({ url: address!, now });
const ulid = monotonicFactory();
const silent = () => {};
const context = {
  db,
  incarnation: 'the one that is killed',
  bus: createInProcessBus(silent),
  log: { debug: silent, info: silent, warn: silent, error: silent },
  // The same key as in the test domain.
  secretKeys: new SecretKeys([Buffer.alloc(32, 7)]),
  now: () => Date.now(),
  newId: () => ulid(),
} as unknown as Context;

const outbox = startOutbox(context, systemClock, {
  deliver: createDeliver({ version: '0', now: () => Date.now(), denyPrivate: false }),
  random: Math.random,
  // The test clock and the clock of this process differ by years.
  giveUpAfter: 1e9,
  retentionDays: 0,
  lease: createLease(context, 'outbox'),
});
await outbox.turn();
if ((await channelsToSend(context)).length === 0) process.stdout.write('empty\n');
setInterval(silent, 1_000);
