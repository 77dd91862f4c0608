import { chmod, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { loadAgentIdentity } from './identity.ts';
import { addressesOf, chooseTarget, type KnownOrchestrator, OrchestratorFile } from './pin.ts';

const [keyA, keyB] = ['aa'.repeat(32), 'bb'.repeat(32)] as const;
const known: KnownOrchestrator = { host: 'old', port: 1, orchestrator_key: keyA, token: null, addresses: [] };
const order = { host: 'new', port: 2, orchestratorKey: null, token: null };

describe('the target', () => {
  test('prefers the key from the command line to the pinned key, and the pinned key to any other key', () => {
    expect(chooseTarget(null, { ...order, orchestratorKey: keyB })).toMatchObject({
      orchestrator_key: keyB,
      pinSource: 'flag',
    });
    expect(chooseTarget(known, order)).toMatchObject({
      host: 'new',
      port: 2,
      orchestrator_key: keyA,
      pinSource: 'pinned',
    });
    expect(chooseTarget(known, null)).toMatchObject({ host: 'old', orchestrator_key: keyA, pinSource: 'pinned' });
    expect(chooseTarget(null, order)).toMatchObject({ orchestrator_key: null, pinSource: 'first_use' });
    expect(chooseTarget(null, null)).toBe(null);
  });

  test('reports that the key from the command line replaces a pinned key', () => {
    expect(chooseTarget(known, { ...order, orchestratorKey: keyB })).toMatchObject({
      orchestrator_key: keyB,
      replacedKey: keyA,
    });
    expect(chooseTarget(known, { ...order, orchestratorKey: keyA })).toMatchObject({ replacedKey: null });
  });

  test('keeps a token until it is used', () => {
    expect(chooseTarget({ ...known, token: 'kept' }, null)).toMatchObject({ token: 'kept' });
    expect(chooseTarget({ ...known, token: 'kept' }, { ...order, token: 'given' })).toMatchObject({ token: 'given' });
  });
});

describe('the addresses of an orchestrator', () => {
  const addresses = ['replica-1:4747', 'old:1', 'replica-1:4747', '[2001:db8::1]:4747'];

  test('begin with the configured one, contain each one once, and are rotated', () => {
    const all = [
      { host: 'old', port: 1 },
      { host: 'replica-1', port: 4747 },
      { host: '2001:db8::1', port: 4747 },
    ];
    expect(addressesOf({ ...known, addresses }, 0)).toEqual(all);
    expect(addressesOf({ ...known, addresses }, 4)).toEqual([all[1], all[2], all[0]]);
    expect(addressesOf(known, 7)).toEqual([{ host: 'old', port: 1 }]);
  });

  test('stay known only with the same configured address and key', () => {
    expect(chooseTarget({ ...known, addresses }, null)).toMatchObject({ addresses });
    expect(chooseTarget({ ...known, addresses }, { ...order, host: 'old', port: 1 })).toMatchObject({ addresses });
    expect(chooseTarget({ ...known, addresses }, order)).toMatchObject({ addresses: [] });
    const replaced = { ...order, host: 'old', port: 1, orchestratorKey: keyB };
    expect(chooseTarget({ ...known, addresses }, replaced)).toMatchObject({ addresses: [] });
  });
});

describe('the data directory', () => {
  let dir: string;
  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), 'muster-agent-'));
  });
  afterEach(() => rm(dir, { recursive: true, force: true }));

  test('stores the orchestrator in a file that only its owner can read', async () => {
    const file = new OrchestratorFile(dir);
    expect(file.read()).toBe(null);
    file.write(known);
    file.write({ ...known, token: 't' });
    expect(new OrchestratorFile(dir).read()).toEqual({ ...known, token: 't' });
    const path = join(dir, 'orchestrator.json');
    await writeFile(path, '{"host":"x","port":1,"orchestrator_key":null,"token":null}');
    expect(new OrchestratorFile(dir).read()).toMatchObject({ host: 'x', addresses: [] });
    await writeFile(path, '{"host":"x","port":1,"orchestrator_key":null,"token":null,"addresses":["x"]}');
    expect(() => new OrchestratorFile(dir).read()).toThrow('is damaged; remove it');
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    await writeFile(path, '{"host":"x","port":1,"orchestrator_key":"zz","token":null}');
    expect(() => new OrchestratorFile(dir).read()).toThrow('is damaged; remove it');
    await chmod(path, 0o604);
    expect(() => new OrchestratorFile(dir).read()).toThrow(`chmod 0600 ${path}`);
  });

  test('creates the key once, and refuses a key file that other users can read', async () => {
    const first = await loadAgentIdentity(join(dir, 'data'));
    const second = await loadAgentIdentity(join(dir, 'data'));
    expect(second.nodeId).toBe(first.nodeId);
    expect(first.nodeId).toMatch(/^[0-9a-f]{32}$/);
    expect(await readFile(join(dir, 'data', 'agent.key'), 'utf8')).toContain('PRIVATE KEY');
    await chmod(join(dir, 'data', 'agent.key'), 0o640);
    await expect(loadAgentIdentity(join(dir, 'data'))).rejects.toThrow('has mode 0640');
    await chmod(join(dir, 'data'), 0o711);
    await expect(loadAgentIdentity(join(dir, 'data'))).rejects.toThrow(`chmod 0700 ${join(dir, 'data')}`);
  });
});
