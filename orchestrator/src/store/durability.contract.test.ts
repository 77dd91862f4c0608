import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterEach, expect, test } from 'vitest';
import { describeDatabases } from '../../test/databases/databases.ts';
import { defineQuery } from './query.ts';

const everyKey = defineQuery('settings/every key', (db) => db.selectFrom('settings').select('key'));
const writer = fileURLToPath(new URL('../../test/databases/write-until-killed.ts', import.meta.url));

describeDatabases('a killed process', (fixture) => {
  let child: ChildProcess | undefined;
  afterEach(() => child?.kill('SIGKILL'));

  test.each([1, 57, 400])(
    'loses no acknowledged write when the process is killed after %i results',
    async (answers) => {
      const at = await fixture.newAddress();
      const started = spawn(process.execPath, [writer, fixture.kind, at], { stdio: ['ignore', 'pipe', 'inherit'] });
      child = started;
      const acknowledged: string[] = [];
      for await (const line of createInterface({ input: started.stdout })) {
        acknowledged.push(line);
        // Lines that the process printed before it was killed may arrive after it was killed.
        if (acknowledged.length === answers) started.kill('SIGKILL');
      }
      if (started.exitCode === null && started.signalCode === null) await once(started, 'exit');
      expect(started.signalCode).toBe('SIGKILL');

      const database = await fixture.open({ at });
      const keys = new Set((await database.all(everyKey, {})).map((row) => row.key));
      for (const number of acknowledged) expect(keys).toContain(`${number}-a`);
      // A write without a result was either committed completely or not at all.
      for (const key of keys)
        expect(keys).toContain(key.endsWith('-a') ? `${key.slice(0, -1)}b` : `${key.slice(0, -1)}a`);
      expect(acknowledged.length).toBeGreaterThanOrEqual(answers);
    },
  );
});
