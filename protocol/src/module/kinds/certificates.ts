import { formatted, integer, list, text } from './field.ts';
import { group, mode, owner, unixFilePath } from './files.ts';
import type { Check } from './format.ts';
import * as format from './format.ts';
import { defineKind, ensure } from './kind.ts';

/** A host name, a host name below any name, or an IP address. */
const domain: Check = (text) =>
  /^(\*\.)?([A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?\.)*[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?$/.test(
    text,
  ) ||
  (/^[0-9A-Fa-f:.]+$/.test(text) && text.includes(':'))
    ? text.length > 253
      ? 'is longer than 253 characters'
      : undefined
    : 'must be a host name such as www.example.org or *.example.org, or an IP address, without a scheme or a port';

const certificates: Check = (text) => {
  if (/-----BEGIN [A-Z ]*PRIVATE KEY-----/.test(text)) return 'must not contain a private key: write it into `key`';
  return /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/.test(text)
    ? undefined
    : 'must contain certificates in PEM, from -----BEGIN CERTIFICATE----- to -----END CERTIFICATE-----';
};

const keyMode = formatted(
  'Permissions of the key: "0600", "0640", "0400", or "0440"; default: 0600',
  (text) =>
    /^0?[46][04]0$/.test(text)
      ? undefined
      : 'must be "0600", "0640", "0400", or "0440": others must not read a private key, and its group must not change it',
  { pattern: '^0?[46][04]0$' },
);

export const certificateKinds = {
  'certificate-file': defineKind({
    description: 'A TLS certificate with its chain, and its private key',
    platforms: ['linux'],
    example:
      'path: /etc/ssl/shop.pem\nkey_path: /etc/ssl/private/shop.key\ncertificate: "${{ secrets.shop_certificate }}"\nkey: "${{ secrets.shop_key }}"\ndomains: [shop.example.org]\nowner: root\ngroup: www-data\nmode: "0644"\nkey_mode: "0640"\nwarn_before: 21',
    required: {
      path: unixFilePath,
      key_path: formatted('Absolute path of the private key', format.unixFile, { pattern: '^/' }),
    },
    optional: {
      certificate: text(
        'The certificate in PEM, followed by the certificates of its issuers, each signed by the next one',
        certificates,
      ),
      key: text('The private key of the certificate in PEM, without a passphrase', format.privateKey),
      domains: list(
        'Names and addresses that the certificate must be valid for',
        formatted('A name or an address', domain),
      ),
      owner,
      group,
      mode: { ...mode, declared: mode.declared.meta({ description: 'Permissions of the certificate; default: 0644' }) },
      key_mode: keyMode,
      warn_before: integer('Days before a certificate expires from which that is drift; default: 30', 0, 3650),
      ensure,
    },
    space: 'path',
    presentNeeds: ['certificate', 'key'],
    sensitive: ['key'],
    normalise: (body) => {
      const octal = typeof body.mode === 'string' ? format.octalMode(body.mode) : null;
      if (octal !== null) body.mode = octal;
    },
  }),
};
