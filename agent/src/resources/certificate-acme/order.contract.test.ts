import { createHash, X509Certificate } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readlinkSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { removeDirectory, startAgent, type TestAgent, temporaryDirectory } from '../../converge/test/agent.ts';
import { acmeCertificate, operation } from '../../converge/test/desired.ts';
import { madeCertificate } from '../../converge/test/made-certificates.ts';

/** Tests that an agent drops an order that it no longer needs. The tests need no authority. */

let home: string;
let agent: TestAgent;
beforeEach(async () => {
  home = temporaryDirectory();
  for (const name of ['data', 'tls', 'www']) mkdirSync(`${home}/${name}`, { mode: 0o700 });
  agent = await startAgent(`${home}/data`, { environment: {} });
});
afterEach(async () => {
  await agent.stop();
  removeDirectory(home);
});

const path = () => `${home}/tls`;
const order = () =>
  `${home}/data/state/private/acme-order-${createHash('sha256').update(path()).digest('hex').slice(0, 32)}`;
const proof = () => `${home}/www/.well-known/acme-challenge/token`;

/** Writes an order and its proof, as a killed agent would leave them. */
function leaveOrder(): void {
  for (const folder of [`${home}/data/state/private`, `${home}/www/.well-known/acme-challenge`])
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  writeFileSync(proof(), 'proof');
  const made = [`${home}/www/.well-known`, `${home}/www/.well-known/acme-challenge`];
  const published = [{ domain: 'www.example.org', token: 'token', webroot: `${home}/www`, record: null, made }];
  const begun = { directory: 'http://127.0.0.1:9/', domains: [], keyType: 'ecdsa-p256', order: 'http://127.0.0.1:9/1' };
  writeFileSync(order(), JSON.stringify({ ...begun, key: 'key', published, at: 0 }), { mode: 0o600 });
}
const declared = (body: object = {}) =>
  acmeCertificate(path(), { directory: 'http://127.0.0.1:9/', webroot: `${home}/www`, ...body });
const run = async (kind: 'plan' | 'apply' | 'drift', ...resources: ReturnType<typeof declared>[]) =>
  (await agent.run(operation(kind, resources))).results;

/** Places a certificate, and returns its fingerprint. */
async function place(days = 300): Promise<string> {
  const issuer = await madeCertificate('Test CA', null, null, 400);
  const { pem, key } = await madeCertificate('leaf', issuer, ['www.example.org'], days);
  for (const [name, text] of Object.entries({
    fullchain: pem + issuer.pem,
    cert: pem,
    chain: issuer.pem,
    privkey: key,
  }))
    writeFileSync(`${path()}/${name}.pem`, text, { mode: name === 'privkey' ? 0o600 : 0o644 });
  return new X509Certificate(pem).fingerprint256;
}

test('revokes only the certificate that was requested for the resource, and only while it is valid', async () => {
  await place();
  const recorded = order().replace('order', 'issued');
  expect(await run('apply', declared({ revoke: true, key_mode: '0640' }))).toMatchObject([{ status: 'changed' }]);
  mkdirSync(`${home}/data/state/private`, { recursive: true, mode: 0o700 });
  const removal = async (fingerprint: string) => {
    writeFileSync(recorded, fingerprint, { mode: 0o600 });
    return (await run('plan'))[0]?.message ?? '';
  };
  expect(await removal(await place())).toContain('revokes the certificate');
  expect(await run('apply')).toMatchObject([{ message: /^cannot reach the certificate authority/ }]);
  expect(await removal(await place(-1))).not.toContain('revokes');
  const ours = await place();
  await place();
  expect(await removal(ours)).not.toContain('revokes');
  expect(await run('apply')).toMatchObject([{ action: /remove|update/, status: 'changed' }]);
  expect(existsSync(recorded)).toBe(false);
});

test('deletes the order and its proof if the certificate is in place, absent, or removed', async () => {
  await place();
  leaveOrder();
  expect(await run('plan', declared())).toMatchObject([{ action: 'update', changes: [{ field: 'order' }] }]);
  expect(await run('apply', declared())).toMatchObject([{ status: 'changed' }]);
  expect([existsSync(order()), readdirSync(`${home}/www`)]).toEqual([false, []]);
  expect(await run('apply', declared())).toMatchObject([{ action: 'none' }]);

  leaveOrder();
  expect(await run('drift')).toEqual([]);
  expect(await run('apply', declared({ ensure: 'absent' }))).toMatchObject([{ status: 'changed' }]);
  expect([existsSync(order()), readdirSync(`${home}/www`)]).toEqual([false, []]);

  leaveOrder();
  expect(await run('apply', declared({ ensure: 'absent' }))).toMatchObject([{ changes: [{ field: 'order' }] }]);
  expect([existsSync(order()), readdirSync(`${home}/www`)]).toEqual([false, []]);

  leaveOrder();
  expect(await run('apply')).toMatchObject([{ action: 'remove', status: 'changed' }]);
  expect([existsSync(order()), readdirSync(`${home}/www`)]).toEqual([false, []]);
});

test('deletes the order of a failed first request when its resource is removed', async () => {
  expect(await run('apply', declared())).toMatchObject([
    { status: 'failed', message: expect.stringMatching(/^cannot reach the certificate authority/) },
  ]);
  leaveOrder();
  const forgets = { action: 'remove', changes: [{ field: 'order', from: 'begun', to: null }] };
  expect(await run('plan')).toMatchObject([forgets]);
  expect(existsSync(order())).toBe(true);
  expect(await run('apply')).toMatchObject([{ ...forgets, status: 'changed' }]);
  expect([existsSync(order()), readdirSync(`${home}/www`)]).toEqual([false, []]);
  expect(await run('plan')).toEqual([]);
});

test('refuses a directory whose files are links, as Certbot creates them, and changes nothing', async () => {
  await place();
  const names = ['fullchain', 'cert', 'chain', 'privkey'];
  mkdirSync(`${home}/archive`);
  for (const name of names) {
    renameSync(`${path()}/${name}.pem`, `${home}/archive/${name}1.pem`);
    symlinkSync(`../archive/${name}1.pem`, `${path()}/${name}.pem`);
  }
  const message = `${names.map((name) => `${path()}/${name}.pem`).join(', ')} are symbolic links, perhaps of another program such as Certbot; nothing was changed. Remove them by hand, or declare another path.`;
  for (const kind of ['plan', 'apply'] as const)
    expect(await run(kind, declared())).toMatchObject([{ status: 'failed', message }]);
  expect(names.map((name) => readlinkSync(`${path()}/${name}.pem`))).toEqual(
    names.map((name) => `../archive/${name}1.pem`),
  );
});
