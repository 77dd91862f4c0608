import type { Sample } from '@muster/protocol';
import { afterEach } from 'vitest';
import type { SampleStore } from '../src/store/samples/samples.ts';
import { openPostgresSamples } from '../src/store/samples/samples-postgres.ts';
import { openSqliteSamples } from '../src/store/samples/samples-sqlite.ts';
import type { DatabaseAddress, DatabaseFixture } from './databases/databases.ts';

/**
 * Call this while defining a suite.
 * @returns a function that opens sample stores, which are closed after the test
 */
export function samplesFixture(fixture: DatabaseFixture) {
  const open: SampleStore[] = [];
  afterEach(async () => {
    for (const store of open.splice(0)) await store.close();
  });
  return {
    /** The location of a sample store. */
    async place(): Promise<DatabaseAddress> {
      const at = await fixture.newAddress();
      // On PostgreSQL, samples are stored in the database, which must exist.
      if (fixture.kind === 'postgres') await (await fixture.open({ at })).close();
      return at;
    },
    async open({
      at,
      retentionSecs = 86_400,
    }: {
      at?: DatabaseAddress;
      retentionSecs?: number;
    } = {}): Promise<SampleStore> {
      const address = at ?? (await this.place());
      const store =
        fixture.kind === 'postgres'
          ? await openPostgresSamples({ url: address, retentionSecs })
          : await openSqliteSamples({
              file: address,
              retentionSecs,
              onFatal: (reason) => {
                throw reason;
              },
            });
      open.push(store);
      return store;
    },
  };
}

/** Returns a sample that contains only the given measures. */
export const sampleAt = (collected_at: number, more: Partial<Sample> = {}): Sample => ({
  collected_at,
  cpu_usage: null,
  memory_total: null,
  memory_used: null,
  swap_used: null,
  disk_total: null,
  disk_used: null,
  load1: null,
  net_rx_bytes: null,
  net_tx_bytes: null,
  processes: null,
  uptime: null,
  ...more,
});
