import { createPrivateKey } from 'node:crypto';
import { parseModule, type ResolvedResource, type ResourceBodies } from '@muster/protocol/module';
import { expect, test } from 'vitest';
import { dayMs, madeCertificate } from '../../converge/test/made-certificates.ts';
import { contentOf, type Inspected } from '../../host/files/inspect.ts';
import { covers, expiresSoon } from '../certificate/chain.ts';
import { readFound } from '../certificate-acme/found.ts';
import type { SeenFile } from '../file-unix/seen.ts';
import type { Circumstances } from '../provider/provider.ts';
import { certificateFile, type SeenCertificateFile } from './certificate-file.ts';

const now = Date.now();
const root = await madeCertificate('Root', null, null);
const middle = await madeCertificate('Middle', root, null);
const names = ['shop.example.org', '*.shop.example.org', '192.0.2.7', '2001:db8::7'];
const leaf = await madeCertificate('shop.example.org', middle, names);
const old = await madeCertificate('shop.example.org', middle, names, 20);
const expired = await madeCertificate('shop.example.org', middle, names, -1);
const early = await madeCertificate('shop.example.org', middle, names, 300, now + 101 * dayMs);

type Body = ResourceBodies['certificate-file'];
const body: Body = {
  ...{ path: '/etc/shop.pem', key_path: '/etc/shop.key', certificate: leaf.pem + middle.pem, key: leaf.key },
  domains: ['shop.example.org'],
};
const declared = (fields: Partial<Body> = {}) =>
  ({
    ...{ type: 'certificate-file', identity: body.path, sensitive_fields: ['key'] },
    body: { ...body, ...fields },
  }) as unknown as ResolvedResource<'certificate-file'>;
const failureOf = (fields: Partial<Body>): string => {
  try {
    certificateFile.check(declared(fields));
  } catch (error) {
    return (error as Error).message;
  }
  return '';
};

const ownership = { ownerName: 'root', groupName: 'root' };
const absent: SeenFile = { found: { type: 'absent' }, ownership };
const file = (text: string, mode: number): SeenFile => {
  const content = contentOf(Buffer.from(text));
  const found: Inspected = { type: 'file', size: content.size, content, uid: 0, gid: 0, mode, stamp: '1:2:3' };
  return { found, ownership };
};
const link: SeenFile = {
  found: { type: 'symlink', target: '../../archive/shop/cert1.pem', uid: 0, gid: 0, mode: 0o777, stamp: '1:2:3' },
  ownership,
};
const diff = (fields: Partial<Body>, seen: Partial<SeenCertificateFile>, purpose: Circumstances['purpose'] = 'apply') =>
  certificateFile.diff(declared(fields), { files: [absent, absent], hasKeyDirectory: true, now, ...seen }, {
    purpose,
    willBeThere: (path: string) => path === '/made',
  } as unknown as Circumstances);
const placed = (certificate: string, key: string) => ({ files: [file(certificate, 0o644), file(key, 0o600)] });

test('accepts a chain in order, with and without its root, and a self-signed certificate', async () => {
  expect(failureOf({})).toBe('');
  expect(failureOf({ certificate: `text\r\n${leaf.pem}${middle.pem}${root.pem}` })).toBe('');
  const own = await madeCertificate('own', null, ['own.example.org']);
  expect(failureOf({ certificate: own.pem, key: own.key, domains: ['own.example.org'] })).toBe('');
});

test('names the certificate that is out of order, is missing, or has a different key', () => {
  expect(failureOf({ certificate: leaf.pem + root.pem + middle.pem })).toBe(
    'certificate 1 of 3 (CN=shop.example.org) is signed by certificate 3 of 3 (CN=Middle), which must follow it',
  );
  expect(failureOf({ certificate: leaf.pem + root.pem })).toBe(
    'certificate 1 of 2 (CN=shop.example.org) is not signed by certificate 2 of 2 (CN=Root): put the certificate of its issuer (CN=Middle) between them, or remove those that follow',
  );
  expect(failureOf({ certificate: middle.pem + leaf.pem })).toBe(
    'the key belongs to certificate 2 of 2 (CN=shop.example.org), which must come first',
  );
  expect(failureOf({ key: old.key })).toBe(
    'the key does not belong to certificate 1 of 2 (CN=shop.example.org): declare the key that the certificate was requested with',
  );
  const cut = `${leaf.pem}-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n`;
  expect(failureOf({ certificate: cut })).toBe('certificate 2 of 2 cannot be read: copy its PEM text again');
});

test('refuses a certificate that was signed with a different key by an issuer of the same name', async () => {
  const other = await madeCertificate('Middle', root, null);
  expect(failureOf({ certificate: leaf.pem + other.pem })).toContain('is not signed by certificate 2 of 2 (CN=Middle)');
});

test('refuses an unreadable key without showing any part of it', () => {
  const broken = `-----BEGIN PRIVATE KEY-----\nSECRETSECRET\n-----END PRIVATE KEY-----\n`;
  expect(failureOf({ key: broken })).toMatch(/^the private key cannot be read: it must be in PEM/);
  const locked = `-----BEGIN ENCRYPTED PRIVATE KEY-----\nSECRET\n-----END ENCRYPTED PRIVATE KEY-----\n`;
  expect(failureOf({ key: locked })).toBe('the private key has a passphrase: remove it with openssl pkey');
});

test('compares the domains with the names and addresses of the certificate', () => {
  expect(failureOf({ domains: ['A.shop.example.org', '*.shop.example.org', '192.0.2.7', '2001:DB8:0::7'] })).toBe('');
  expect(failureOf({ domains: ['shop.example.org', 'a.b.shop.example.org', '192.0.2.8'] })).toBe(
    'certificate 1 of 2 (CN=shop.example.org) is not valid for a.b.shop.example.org, 192.0.2.8, only for shop.example.org, *.shop.example.org, 192.0.2.7, 2001:db8:0:0:0:0:0:7: declare a certificate for all `domains`',
  );
  expect(covers(['*.example.org'], 'example.org')).toBe(false);
});

test('refuses to place a certificate that is not valid now, but keeps one that is already in place', () => {
  const late = { certificate: expired.pem + middle.pem, key: expired.key };
  expect(() => diff(late, {})).toThrow(
    /^certificate 1 of 2 \(CN=shop.example.org\) expired at .*; nothing was changed$/,
  );
  expect(() => diff({ certificate: early.pem, key: early.key }, {})).toThrow(/valid only from .* check the clock/);
  const same = diff(late, placed(late.certificate, late.key));
  expect(same).toMatchObject({ action: 'none', message: expect.stringMatching(/expired at/) });
});

test('repairs the permissions of a key whose certificate has expired', () => {
  const late = { certificate: expired.pem + middle.pem, key: expired.key };
  const exposed = { files: [file(late.certificate, 0o644), file(late.key, 0o644)] };
  expect(diff(late, exposed)).toMatchObject({
    ...{ action: 'update', message: expect.stringMatching(/expired at/) },
    changes: [{ field: 'key_mode', from: '0644', to: '0600' }],
  });
  const other = { files: [file(late.certificate, 0o644), file(leaf.key, 0o644)] };
  expect(() => diff(late, other)).toThrow(/expired at .*; nothing was changed$/);
});

test('reports a certificate that is about to expire as drift, with values that stay the same', () => {
  const soon = { certificate: old.pem + middle.pem, key: old.key };
  const seen = placed(soon.certificate, soon.key);
  const { notAfter } = old.made;
  const until = notAfter.toISOString().replace('.000Z', 'Z');
  expect(diff(soon, seen, 'drift')).toMatchObject({
    action: 'update',
    changes: [{ field: 'not_after', from: until, to: 'more than 30 days from now' }],
  });
  expect(diff(soon, { ...seen, now: now + dayMs }, 'drift')).toEqual(diff(soon, seen, 'drift'));
  expect(diff({ ...soon, warn_before: 10 }, seen, 'drift').action).toBe('none');
  expect(diff(soon, seen)).toMatchObject({ action: 'none', message: expect.stringContaining(`expires at ${until}`) });
});

test("never requires more than half of a certificate's lifetime to be left", () => {
  expect(expiresSoon({ from: 0, until: 6 * dayMs }, 30, 2 * dayMs)).toBe(false);
  expect(expiresSoon({ from: 0, until: 6 * dayMs }, 30, 3 * dayMs + 1)).toBe(true);
  expect(expiresSoon({ from: 0, until: 90 * dayMs }, 30, 59 * dayMs)).toBe(false);
  expect(expiresSoon({ from: 0, until: 90 * dayMs }, 30, 60 * dayMs + 1)).toBe(true);
});

test('names the certificate and the key in changes, but never shows the text of the key', () => {
  const { changes, action } = diff({}, {});
  expect(action).toBe('create');
  expect(changes.map(({ field }) => field)).toEqual([
    'ensure',
    'fingerprint',
    'not_after',
    'domains',
    'mode',
    'key',
    'key_mode',
  ]);
  const fields = diff({}, placed(old.pem + middle.pem, old.key)).changes.map(({ field }) => field);
  expect(fields).toEqual(['fingerprint', 'not_after', 'key']);
  const chain = diff({}, placed(leaf.pem, leaf.key)).changes;
  expect(chain).toEqual([{ field: 'certificate', from: 'another certificate', to: 'as declared' }]);
  const mode = diff({}, { files: [file(leaf.pem + middle.pem, 0o644), file(leaf.key, 0o644)] });
  expect(mode).toMatchObject({
    action: 'update',
    changes: [{ field: 'key_mode', from: '0644', to: '0600' }],
    diff: null,
  });
});

test('requires the directory of the key, unless an earlier resource creates it', () => {
  expect(() => diff({ key_path: '/none/key' }, { hasKeyDirectory: false })).toThrow('there is no directory /none');
  expect(diff({ key_path: '/made/key' }, { hasKeyDirectory: false }).action).toBe('create');
});

test('refuses to replace symbolic links, and names them', () => {
  expect(() => diff({}, { files: [link, absent] })).toThrow(
    '/etc/shop.pem is a symbolic link, perhaps of another program such as Certbot; nothing was changed. Remove it by hand, or declare another path.',
  );
  const both = '/etc/shop.pem, /etc/shop.key are symbolic links';
  for (const purpose of ['plan', 'apply'] as const)
    expect(() => diff({}, { files: [link, link] }, purpose)).toThrow(both);
  const seen = { files: [link, file(leaf.key, 0o600)] };
  expect(diff({}, seen, 'drift').changes).toContainEqual({ field: 'symlink', from: expect.anything(), to: null });
  expect(diff({ ensure: 'absent' }, { files: [link, link] }).action).toBe('remove');
});

const parameters = '-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n';

test('accepts keys with CRLF line ends and with EC parameters, and writes only the key, with LF line ends', () => {
  const sec1 = createPrivateKey(leaf.key).export({ type: 'sec1', format: 'pem' }).toString();
  const chain = leaf.pem + middle.pem;
  for (const [key, written] of [
    [leaf.key.replaceAll('\n', '\r\n'), leaf.key],
    [parameters + sec1, sec1],
    [(parameters + sec1).replaceAll('\n', '\r\n'), sec1],
  ] as const) {
    expect(failureOf({ key })).toBe('');
    expect(failureOf({ key, certificate: chain.replaceAll('\n', '\r\n') })).toBe('');
    expect(diff({ key }, placed(chain, written)).action).toBe('none');
  }
  const { keyType } = readFound(chain, parameters + sec1);
  expect(keyType).toBe('ecdsa-p256');
});

const refusals = (fields: string) => {
  const resource = `{ certificate-file: { path: /c.pem, key_path: /c.key, ${fields} } }`;
  const text = `name: m\nsupports: [{ platform: linux }]\nresources: [{ id: c, resource: ${resource} }]\n`;
  const parsed = parseModule(text);
  return parsed.ok ? [] : parsed.faults.map(({ message }) => message);
};

test('explains on upload how to correct an invalid body', () => {
  const key = '"-----BEGIN PRIVATE KEY-----\\nx"';
  const certificate = '"-----BEGIN CERTIFICATE-----\\nx\\n-----END CERTIFICATE-----"';
  expect(refusals(`certificate: ${certificate}, key: ${key}`)).toEqual([]);
  for (const other of [
    '"-----BEGIN PRIVATE KEY-----\\r\\nx"',
    JSON.stringify(`${parameters}-----BEGIN EC PRIVATE KEY-----\nx`),
    JSON.stringify(`${parameters}-----BEGIN EC PRIVATE KEY-----\nx`.replaceAll('\n', '\r\n')),
  ])
    expect(refusals(`certificate: ${certificate}, key: ${other}`)).toEqual([]);
  expect(refusals(`certificate: ${certificate}, key: ${JSON.stringify(parameters)}`)).toEqual([
    expect.stringContaining('must be a private key'),
  ]);
  expect(refusals(`certificate: ${key}, key: ${key}`)).toEqual([
    expect.stringContaining('must not contain a private key: write it into `key`'),
  ]);
  expect(refusals(`certificate: x, key: ${key}, key_mode: "0644", domains: ["https://x.org"]`)).toEqual([
    expect.stringContaining('must contain certificates in PEM'),
    expect.stringContaining('must be "0600", "0640", "0400", or "0440"'),
    expect.stringContaining('must be a host name such as www.example.org'),
  ]);
  expect(refusals(`key: ${key}`)).toEqual([expect.stringContaining('certificate')]);
});
