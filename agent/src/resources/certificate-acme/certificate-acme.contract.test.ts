import { execFileSync, spawn } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import type { ResolvedResource } from '@muster/protocol/module';
import type { OperationMessage } from '@muster/protocol/wire';
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../../../lib/src/clock.ts';
import { removeDirectory, startAgent, type TestAgent, temporaryDirectory } from '../../converge/test/agent.ts';
import { type ContractAgent, contractAgent } from '../../converge/test/contract-agent.ts';
import { acmeCertificate, operation, script } from '../../converge/test/desired.ts';
import { dayMs } from '../../converge/test/made-certificates.ts';
import { hasPebble, startPebble } from '../../converge/test/pebble.ts';
import { providerContract } from '../../converge/test/provider-contract.ts';
import { snapshotTree } from '../../converge/test/tree.ts';

/**
 * Tests certificates from a real authority, which checks proofs over HTTP and DNS. Requires the Debian package pebble.
 */

const canTry = hasPebble();
const folder = temporaryDirectory();
const records = `${folder}/records`;
const pebble = canTry ? await startPebble(records) : null;
const { directory = '', environment = {} } = pebble ?? {};
afterAll(async () => {
  await pebble?.stop();
  removeDirectory(folder);
});

let home: string;
let root: string;
beforeEach(() => {
  home = temporaryDirectory();
  root = `${home}/root`;
  for (const name of ['data', 'root', 'root/www']) mkdirSync(`${home}/${name}`, { mode: 0o700 });
  chmodSync(`${root}/www`, 0o755);
  if (pebble !== null) Object.assign(pebble, { webroot: `${root}/www`, beforeAnswer: null });
});
afterEach(() => removeDirectory(home));

const byHttp = () => ({ directory, webroot: `${root}/www` });
/** Pebble sends three concurrent requests to validate each proof. */
const requestsOfProof = 3;
/** Stores the TXT records in the file that the test's DNS server reads. */
const dnsScript = `
case $ACME_ACTION in
  add) echo "$ACME_RECORD_NAME $ACME_RECORD_VALUE" >> ${records} ;;
  remove) grep -v "$ACME_RECORD_VALUE" ${records} > ${records}.new; mv ${records}.new ${records} ;;
esac`;

describe.runIf(canTry)('the provider contract (pebble)', () => {
  let agent: ContractAgent;
  beforeEach(async () => {
    agent = await contractAgent(`${home}/data`, { environment });
  });
  afterEach(() => agent.stop());

  const begin = async () => ({
    agent,
    desired: acmeCertificate(`${root}/new/tls`, { ...byHttp(), domains: ['a.example.org', 'b.example.org'] }),
    changed: acmeCertificate(`${root}/new/tls`, { ...byHttp(), domains: ['a.example.org'], key_mode: '0640' }),
    snapshot: async () => snapshotTree(root),
    tamper: async () => chmodSync(`${root}/new/tls/privkey.pem`, 0o644),
  });
  providerContract({ begin, moved: ['key_mode'], steps: 8, sample: 2 });
});

describe.runIf(canTry)('a certificate (pebble)', () => {
  let agent: TestAgent;
  const start = async (days = 0) => {
    const clock = { ...systemClock, now: () => Date.now() + days * dayMs };
    agent = await startAgent(`${home}/data`, { environment, clock });
  };
  beforeEach(() => start());
  afterEach(() => agent.stop());
  const path = () => `${root}/tls`;
  const run = async (kind: 'plan' | 'apply' | 'drift', ...resources: ResolvedResource[]) =>
    (await agent.run(operation(kind, resources))).results;
  const http = (body: Partial<Parameters<typeof acmeCertificate>[1]> = {}) =>
    acmeCertificate(path(), { ...byHttp(), ...body });
  const leaf = () => new X509Certificate(readFileSync(`${path()}/cert.pem`));
  const privateFiles = () => readdirSync(`${home}/data/state/private`);

  test('sets the group of the files even if no file exists yet', async () => {
    const group = execFileSync('id', ['-gn'], { encoding: 'utf8' }).trim();
    const shared = http({ group, key_mode: '0640' });
    expect(await run('plan', shared)).toMatchObject([{ status: 'would_change' }]);
    expect(await run('apply', shared)).toMatchObject([{ status: 'changed' }]);
    expect(statSync(`${path()}/privkey.pem`)).toMatchObject({ gid: process.getgid?.() });
    expect(await run('apply', shared)).toMatchObject([{ status: 'unchanged' }]);
    expect(await run('plan', http({ group: 'no-such-group' }))).toMatchObject([
      { status: 'failed', message: 'there is no group no-such-group' },
    ]);
  });

  test('requests a certificate with its key, leaves nothing in the webroot, and hides the account key from other users', async () => {
    expect(await run('plan', http())).toMatchObject([
      { message: expect.stringMatching(/^requests a certificate for www.example.org from 127/) },
    ]);
    expect(existsSync(path())).toBe(false);
    expect(await run('apply', http())).toMatchObject([{ status: 'changed' }]);
    expect(readdirSync(path()).sort()).toEqual(['cert.pem', 'chain.pem', 'fullchain.pem', 'privkey.pem']);
    expect(statSync(`${path()}/privkey.pem`).mode & 0o777).toBe(0o600);
    const text = (name: string) => readFileSync(`${path()}/${name}.pem`, 'utf8');
    expect(text('fullchain')).toBe(text('cert') + text('chain'));
    expect(leaf().checkHost('www.example.org')).toBe('www.example.org');
    expect(readdirSync(`${root}/www`)).toEqual([]);
    expect(privateFiles()).toEqual([expect.stringMatching(/^acme-account-/)]);
    expect(statSync(`${home}/data/state/private/${privateFiles()[0]}`).mode & 0o777).toBe(0o600);
  });

  test('reports a certificate as drift `renew_before` days before it expires, and renews it with the next apply', async () => {
    const declared = http({ renew_before: 20 });
    await run('apply', declared);
    const { serialNumber, validFromDate, validToDate } = leaf();
    const lifetime = Math.floor((validToDate.getTime() - validFromDate.getTime()) / dayMs);
    await agent.stop();
    await start(lifetime - 21);
    expect(await run('drift')).toEqual([]);
    await agent.stop();
    await start(lifetime - 19);
    const renewed = {
      action: 'update',
      changes: [{ field: 'not_after' }],
      message: expect.stringMatching(/^renews the certificate/),
    };
    expect(await run('drift')).toMatchObject([{ ...renewed, corrective: true }]);
    expect(await run('plan', declared)).toMatchObject([renewed]);
    expect(leaf().serialNumber).toBe(serialNumber);
    // Pebble's certificates are valid for five years, so the new one is also valid at this time.
    await agent.stop();
    await start(Math.ceil(lifetime / 2) + 1);
    const soon = http({ renew_before: 3650 });
    const follower = script('s', { apply: 'true' }, { rerun_on: [soon.key] });
    expect(await run('apply', soon, follower)).toMatchObject([{ ...renewed, status: 'changed' }, { action: 'run' }]);
    expect(leaf().serialNumber).not.toBe(serialNumber);
  });

  test('requests a new certificate if the key type or the key does not match, and repairs other files without requesting one', async () => {
    await run('apply', http());
    const { serialNumber } = leaf();
    for (const name of ['cert', 'chain']) writeFileSync(`${path()}/${name}.pem`, 'by hand\n');
    expect(await run('apply', http())).toMatchObject([
      { changes: [{ field: 'certificate' }, { field: 'chain' }], message: null },
    ]);
    expect(leaf().serialNumber).toBe(serialNumber);
    const other = http({ key_type: 'rsa-2048' });
    expect(await run('apply', other)).toMatchObject([
      { changes: [{ field: 'key_type', from: 'ecdsa-p256', to: 'rsa-2048' }] },
    ]);
    expect(leaf().publicKey.asymmetricKeyType).toBe('rsa');
    writeFileSync(`${path()}/privkey.pem`, 'by hand\n');
    expect(await run('drift')).toMatchObject([
      { changes: [{ field: 'certificate', from: expect.stringMatching(/private key cannot be read/) }] },
    ]);
  });

  test('proves control of names with a DNS script, including wildcard names', async () => {
    const body = { directory, dns_script: dnsScript, domains: ['*.example.org', 'example.org'] };
    expect(await run('apply', acmeCertificate(path(), body))).toMatchObject([{ status: 'changed' }]);
    expect(leaf().subjectAltName).toBe('DNS:*.example.org, DNS:example.org');
    expect(readFileSync(records, 'utf8')).toBe('');
    const failing = { ...body, dns_script: 'echo "no such zone" >&2; exit 3', domains: ['b.example.net'] };
    expect(await run('apply', acmeCertificate(path(), failing))).toMatchObject([
      {
        status: 'failed',
        message: '`dns_script` exited with 3 when adding the record _acme-challenge.b.example.net: no such zone',
      },
    ]);
  });

  test('reports what the authority found if a proof fails, and leaves no files behind', async () => {
    if (pebble !== null) pebble.webroot = null;
    expect(await run('apply', http())).toMatchObject([
      {
        status: 'failed',
        message: expect.stringMatching(
          /^127\.0\.0\.1:\d+ did not find the proof for www\.example\.org: .*404 \(unauthorized\); check that http/,
        ),
      },
    ]);
    expect(existsSync(`${path()}/privkey.pem`)).toBe(false);
    expect(readdirSync(`${root}/www`)).toEqual([]);
    if (pebble !== null) pebble.webroot = `${root}/www`;
    expect(await run('apply', http())).toMatchObject([{ status: 'changed' }]);
  });

  test('names the unreachable authority or the missing webroot in the error', async () => {
    expect(await run('apply', http({ directory: 'http://127.0.0.1:9/dir' }))).toMatchObject([
      {
        status: 'failed',
        message: expect.stringMatching(
          /^cannot reach the certificate authority 127\.0\.0\.1:9 to read the directory: .*ECONNREFUSED/,
        ),
      },
    ]);
    expect(await run('apply', http({ webroot: `${root}/none` }))).toMatchObject([
      { status: 'failed', message: expect.stringMatching(/^there is no directory .*\/none: declare the directory/) },
    ]);
  });

  test('revokes a certificate on removal if that is declared', async () => {
    await run('apply', http());
    const kept = leaf().serialNumber;
    await run('apply');
    expect(await pebble?.statusOf(kept)).toBe('Valid');
    await run('apply', http({ revoke: true }));
    const { serialNumber } = leaf();
    expect(await run('plan')).toMatchObject([{ action: 'remove', message: 'revokes the certificate' }]);
    expect(await run('apply')).toMatchObject([{ action: 'remove', status: 'changed' }]);
    expect(await pebble?.statusOf(serialNumber)).toBe('Revoked');
    expect(readdirSync(root)).toEqual(['www']);
  });

  const orders = () => privateFiles().filter((file) => file.startsWith('acme-order-'));
  interface Order {
    order: string;
    key: string;
    published: { token: string }[];
  }
  const orderFile = () => `${home}/data/state/private/${orders()[0]}`;
  const keptOrder = (): Order => JSON.parse(readFileSync(orderFile(), 'utf8'));
  /**
   * Calls `act` after the authority has sent this number of requests for the proof, before it receives a response.
   * Resolves when the authority has accepted the proof and `act` has finished.
   */
  async function whileLooking(requests: number, act: () => Promise<unknown>): Promise<void> {
    let acting: Promise<unknown> | undefined;
    let sent = 0;
    const proved = pebble?.nextProof();
    const asked = new Promise<void>((resolve) => {
      if (pebble !== null)
        pebble.beforeAnswer = async () => {
          if (++sent === requests) resolve();
          await asked;
          acting ??= act();
        };
    });
    await asked;
    await proved;
    await acting;
  }
  /** Stops the agent while the authority validates the proof. */
  async function stopHalfway(message: OperationMessage): Promise<Order> {
    // The agent removes the proof when it stops, so all requests must have been sent.
    const stopped = whileLooking(requestsOfProof, () => agent.stop());
    await agent.engine.accept(message);
    await stopped;
    return keptOrder();
  }
  async function expectContinued(message: OperationMessage): Promise<string> {
    await start();
    expect((await agent.ended(message.operation_id)).results).toMatchObject([{ status: 'changed' }]);
    expect(orders()).toEqual([]);
    expect(readdirSync(`${root}/www`)).toEqual([]);
    return readFileSync(`${path()}/privkey.pem`, 'utf8');
  }

  test('finishes the order after the agent was stopped while the authority was checking the proof', async () => {
    const message = operation('apply', [http({ domains: ['stopped.example.org'] })]);
    const { key } = await stopHalfway(message);
    expect(await expectContinued(message)).toBe(key);
  });

  test('drops an order that the authority no longer has, and creates a new one', async () => {
    const message = operation('apply', [http({ domains: ['dropped.example.org'] })]);
    const order = await stopHalfway(message);
    writeFileSync(orderFile(), JSON.stringify({ ...order, order: `${order.order}0` }));
    expect(await expectContinued(message)).not.toBe(order.key);
  });

  test('continues the order of an agent that was killed while the authority was checking the proof', async () => {
    const message = operation('apply', [http({ domains: ['killed.example.org'] })]);
    await agent.stop();
    writeFileSync(`${home}/operations.json`, JSON.stringify([message]));
    const doomed = new URL('../../converge/test/doomed.ts', import.meta.url).pathname;
    const child = spawn(process.execPath, [doomed, `${home}/data`, `${home}/operations.json`, '0'], {
      env: { ...process.env, ...environment },
      stdio: 'ignore',
    });
    const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
    // The first request, because the authority gives up if it waits five seconds for the responses.
    const killed = whileLooking(1, async () => child.kill('SIGKILL'));
    await Promise.race([killed, ended]);
    await ended;
    expect(child.signalCode).toBe('SIGKILL');
    await killed;
    const { key, published } = keptOrder();
    expect(published).toHaveLength(1);
    expect(await expectContinued(message)).toBe(key);
  });
});
