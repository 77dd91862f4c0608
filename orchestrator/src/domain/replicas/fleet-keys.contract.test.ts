import { expect, test } from 'vitest';
import { describeDatabases } from '../../../test/databases/databases.ts';
import { claimKeys, requireFleetKeys } from './fleet-keys.ts';
import { closeOtherReplicas } from './replicas.ts';

const keys = { identity: 'a', api: 'b', secrets: 'c' };

describeDatabases('keys of replicas', (fixture) => {
  test('refuses keys that differ from those of the process that last used the database alone', async () => {
    const db = await fixture.open();
    await closeOtherReplicas(db, 'alone', claimKeys({ ...keys, secrets: null }));
    const fresh = requireFleetKeys(db, { ...keys, identity: 'fresh' }, '/data');
    await expect(fresh).rejects.toThrow('copy identity.key from');
    await requireFleetKeys(db, { ...keys, secrets: 'rotated' }, '/data');
    await closeOtherReplicas(db, 'alone', claimKeys({ ...keys, identity: 'restored', secrets: null }));
    await expect(requireFleetKeys(db, keys, '/data')).rejects.toThrow('copy identity.key from');
    await requireFleetKeys(db, { ...keys, identity: 'restored' }, '/data');
  });
});
