import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { lockDirectory } from '../../../lib/src/instance-lock.ts';
import { saveTarget } from './save-target.ts';

const order = { host: 'muster.example', port: 4747, orchestratorKey: 'ab'.repeat(32), token: 'mt_1' };

async function inFolder(use: (folder: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'muster-remember-'));
  try {
    await use(join(folder, 'data'));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

describe('the saved target', () => {
  test('saves a target with its key and token in a file that only its owner can read, and replaces it later', async () => {
    await inFolder(async (folder) => {
      const nodeId = await saveTarget(folder, order);
      expect(nodeId).toMatch(/^[0-9a-f]{32}$/);
      const path = join(folder, 'orchestrator.json');
      const known = {
        host: 'muster.example',
        port: 4747,
        orchestrator_key: 'ab'.repeat(32),
        token: 'mt_1',
        addresses: [],
      };
      expect(JSON.parse(readFileSync(path, 'utf8'))).toEqual(known);
      expect(statSync(path).mode & 0o777).toBe(0o600);
      expect(await saveTarget(folder, { ...order, host: 'other.example', orchestratorKey: null, token: null })).toBe(
        nodeId,
      );
      // The key stays pinned. The token is kept, because it may not have been used yet.
      expect(JSON.parse(readFileSync(path, 'utf8'))).toEqual({ ...known, host: 'other.example' });
    });
  });

  test('refuses to change the target while an agent is running', async () => {
    await inFolder(async (folder) => {
      await saveTarget(folder, order);
      const unlock = await lockDirectory(folder, 'agent');
      await expect(saveTarget(folder, { ...order, host: 'other.example' })).rejects.toThrow(
        'is in use by another agent',
      );
      expect(JSON.parse(readFileSync(join(folder, 'orchestrator.json'), 'utf8'))).toMatchObject({ host: order.host });
      unlock();
    });
  });
});
