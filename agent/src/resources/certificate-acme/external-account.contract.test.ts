import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ResolvedResource } from '@muster/protocol/module';
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest';
import { removeDirectory, startAgent, type TestAgent, temporaryDirectory } from '../../converge/test/agent.ts';
import { acmeCertificate, operation } from '../../converge/test/desired.ts';
import { hasPebble, startPebble } from '../../converge/test/pebble.ts';

/**
 * Tests an authority that accepts only accounts that were opened there in advance. Requires the Debian package pebble.
 */

const canTry = hasPebble();
const keys = { 'kid-1': Buffer.alloc(32, 1).toString('base64url'), 'kid-2': Buffer.alloc(32, 2).toString('base64url') };
const pebble = canTry ? await startPebble(null, keys) : null;
const { directory = '', environment = {} } = pebble ?? {};
afterAll(() => pebble?.stop());

describe.runIf(canTry)('an external account (pebble)', () => {
  let home: string;
  let agent: TestAgent;
  beforeEach(async () => {
    home = temporaryDirectory();
    for (const name of ['data', 'www']) mkdirSync(`${home}/${name}`, { mode: 0o700 });
    if (pebble !== null) pebble.webroot = `${home}/www`;
    agent = await startAgent(`${home}/data`, { environment });
  });
  afterEach(async () => {
    await agent.stop();
    removeDirectory(home);
  });
  const declared = (body: Partial<Parameters<typeof acmeCertificate>[1]> = {}): ResolvedResource => ({
    ...acmeCertificate(`${home}/tls`, { directory, webroot: `${home}/www`, ...body }),
    sensitive_fields: ['eab_hmac_key'],
  });
  const run = async (kind: 'plan' | 'apply', ...resources: ResolvedResource[]) =>
    (await agent.run(operation(kind, resources))).results;
  const bound = { eab_key_id: 'kid-1', eab_hmac_key: keys['kid-1'] };
  const accounts = () => readdirSync(`${home}/data/state/private`).filter((name) => name.startsWith('acme-account-'));

  test('binds the account to the external account, and never shows the HMAC key', async () => {
    const results = [...(await run('plan', declared(bound))), ...(await run('apply', declared(bound)))];
    expect(results.map(({ status }) => status)).toEqual(['would_change', 'changed']);
    expect(existsSync(`${home}/tls/fullchain.pem`)).toBe(true);
    expect(JSON.stringify(results)).not.toContain(keys['kid-1']);
    const privateFolder = `${home}/data/state/private`;
    for (const name of readdirSync(privateFolder))
      expect(readFileSync(join(privateFolder, name), 'utf8')).not.toContain(keys['kid-1']);
  });

  test('reuses the account to order and to revoke a certificate', async () => {
    await run('apply', declared({ ...bound, revoke: true }));
    const more = declared({ ...bound, revoke: true, domains: ['a.example.org', 'b.example.org'] });
    expect(await run('apply', more)).toMatchObject([{ status: 'changed' }]);
    expect(accounts()).toHaveLength(1);
    expect(await run('apply')).toMatchObject([{ status: 'changed', message: expect.stringContaining('revoke') }]);
  });

  test('opens a separate account for each external account', async () => {
    await run('apply', declared(bound));
    const other = declared({ eab_key_id: 'kid-2', eab_hmac_key: `${keys['kid-2']}=`, domains: ['b.example.org'] });
    expect(await run('apply', other)).toMatchObject([{ status: 'changed' }]);
    expect(accounts()).toHaveLength(2);
  });

  test('explains what to declare if the external account is missing, and fails with a wrong key without showing it', async () => {
    expect(await run('apply', declared())).toMatchObject([
      { status: 'failed', message: expect.stringContaining('declare `eab_key_id` and `eab_hmac_key`') },
    ]);
    const [wrong] = await run('apply', declared({ eab_key_id: 'kid-1', eab_hmac_key: keys['kid-2'] }));
    expect(wrong).toMatchObject({ status: 'failed', message: expect.stringContaining('refuses to open an account') });
    expect(JSON.stringify(wrong)).not.toContain(keys['kid-2']);
  });
});
