import { mkdir, mkdtemp, rm, rmdir } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../../lib/src/clock.ts';
import { type Config, configSchema } from '../config/schema.ts';
import { startOrchestrator } from './start.ts';

describe('start', () => {
  let dir: string;
  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), 'muster-compose-'));
  });
  afterEach(() => rm(dir, { recursive: true, force: true }));

  const fatal: Error[] = [];
  const start = (config: Partial<Config> = {}) =>
    startOrchestrator(
      {
        ...configSchema.parse({}),
        api_host: '127.0.0.1',
        agent_host: '127.0.0.1',
        api_port: 0,
        agent_port: 0,
        ...config,
      },
      dir,
      { log: pino({ level: 'silent' }), clock: systemClock, onFatal: (reason) => void fatal.push(reason) },
    );
  /** Starts again, which works only if the directory lock, the ports, and the databases were released. */
  const startsNow = async () => {
    const running = await start();
    await running.stop();
    expect(fatal).toEqual([]);
  };

  test('starts without sample storage, and reports the failure until the storage works', async () => {
    await mkdir(join(dir, 'metrics.db'));
    const running = await start({ tls_enabled: false });
    const reasons = async () =>
      ((await (await fetch(`${running.apiUrl}/api/v1/status`)).json()) as { reasons: string[] }).reasons;
    expect(await reasons()).toEqual(['metrics']);
    expect((await fetch(`${running.apiUrl}/readyz`)).status).toBe(200);
    await rmdir(join(dir, 'metrics.db'));
    await expect.poll(reasons).toEqual([]);
    await running.stop();
    expect(fatal).toEqual([]);
  });

  test('releases all resources if a port is in use', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => other.once('listening', resolve));
    const { port } = other.address() as { port: number };
    await expect(start({ agent_port: port })).rejects.toThrow('EADDRINUSE');
    await new Promise((resolve) => other.close(resolve));
    await startsNow();
  });
});
