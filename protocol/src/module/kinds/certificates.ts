import { boolean, choice, type Field, formatted, integer, list, text } from './field.ts';
import { group, mode, normaliseMode, owner, unixFilePath } from './files.ts';
import type { Check } from './format.ts';
import * as format from './format.ts';
import { defineKind, ensure } from './kind.ts';

/** A host name, a wildcard host name such as `*.example.org`, or an IP address. */
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

const certificateKey: Check = (text) =>
  /^(-----BEGIN EC PARAMETERS-----[^-]+-----END EC PARAMETERS-----\s+)?-----BEGIN [A-Z ]*PRIVATE KEY-----\r?\n/.test(
    text,
  )
    ? undefined
    : 'must be a private key that begins with -----BEGIN';

const keyMode = formatted(
  'Permissions of the key: "0600", "0640", "0400", or "0440"; default: 0600',
  (text) =>
    /^0?[46][04]0$/.test(text)
      ? undefined
      : 'must be "0600", "0640", "0400", or "0440": others must not read a private key, and its group must not change it',
  { pattern: '^0?[46][04]0$' },
);

const hostName: Check = (text) =>
  /^(\d{1,3}\.){3}\d{1,3}$|:/.test(text)
    ? 'must be a host name: certificates for addresses are not requested'
    : domain(text);

/** The URL of an ACME server. Only a server on the machine itself may use HTTP. */
const acmeDirectory: Check = (text) => {
  const url = format.httpUrl(text) === undefined ? URL.parse(text) : null;
  if (url === null || url.username !== '' || url.password !== '')
    return 'must be the https directory URL of an ACME server, such as https://acme-v02.api.letsencrypt.org/directory';
  return url.protocol === 'https:' || ['127.0.0.1', '[::1]', 'localhost'].includes(url.hostname)
    ? undefined
    : 'must begin with https://, except for a server on the machine itself';
};

const emailAddress: Check = (text) =>
  /^[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9.-]{1,200}$/.test(text)
    ? undefined
    : 'must be one e-mail address, such as ops@example.org, without "mailto:"';

const eabKeyId: Check = (text) =>
  /^[\x21-\x7e]{1,256}$/.test(text) ? undefined : 'must be 1 to 256 printable ASCII characters, without spaces';

/** A key of at least 16 bytes. Authorities show it with or without padding. */
const eabHmacKey: Check = (text) =>
  /^[A-Za-z0-9_-]{22,1024}={0,2}$/.test(text)
    ? undefined
    : 'must be at least 16 bytes as base64url: letters, digits, "-", and "_"';

const acceptance = 'Whether you accept the terms of service of the authority; must be true';
const agreement: Field<boolean> = {
  ...boolean(acceptance),
  declared: boolean(acceptance)
    .declared.refine(
      (value) => value !== false,
      'must be true: read the terms of service of the authority, and accept them',
    )
    .meta({ description: acceptance }),
};

/** Names of the files of `certificate-acme`, the same as in Certbot. */
const acmeFiles = ['fullchain.pem', 'cert.pem', 'chain.pem', 'privkey.pem'];

export const certificateKinds = {
  'certificate-acme': defineKind({
    description: 'A TLS certificate that an authority issues and renews by ACME, such as Let’s Encrypt',
    platforms: ['linux'],
    example:
      'path: /etc/ssl/shop\ndomains: [shop.example.org, www.shop.example.org]\ndirectory: https://acme-v02.api.letsencrypt.org/directory\nagree_terms: true\nemail: ops@example.org\nwebroot: /var/www/shop\nrenew_before: 30\nkey_type: ecdsa-p256\nowner: root\ngroup: www-data\nkey_mode: "0640"\nrevoke: false',
    required: {
      path: formatted('Absolute path of the directory that contains the files', format.unixFile, { pattern: '^/' }),
      domains: list('All names of the certificate', formatted('A host name', hostName), { atLeast: 1 }),
      directory: formatted('https directory URL of the ACME server', acmeDirectory),
      agree_terms: agreement,
    },
    optional: {
      email: formatted('Address for the account at the authority', emailAddress),
      eab_key_id: formatted('Key identifier of the account that was opened at the authority beforehand', eabKeyId),
      eab_hmac_key: text('HMAC key of that account, as base64url, as the authority shows it', eabHmacKey),
      webroot: formatted(
        'Absolute path of the directory that the web server serves for all domains; proves control of them with http-01',
        format.unixFile,
        { pattern: '^/' },
      ),
      dns_script: text(
        'Shell script that adds or removes a TXT record, as specified by $ACME_ACTION (add or remove), $ACME_RECORD_NAME, and $ACME_RECORD_VALUE; proves control of the domains with dns-01',
        format.allOf(format.notEmpty, format.noNul),
      ),
      renew_before: integer(
        'Number of days before its expiry at which the certificate is renewed; default: 30',
        0,
        3650,
      ),
      key_type: choice('Type of the private key', ['ecdsa-p256', 'ecdsa-p384', 'rsa-2048', 'rsa-4096'], 'ecdsa-p256'),
      owner,
      group,
      key_mode: keyMode,
      revoke: boolean('Whether removing the resource revokes the certificate'),
      ensure,
    },
    writes: ({ path }) => (typeof path === 'string' ? acmeFiles.map((name) => `${path}/${name}`) : []),
    exclusive: [['webroot', 'dns_script']],
    needs: { eab_key_id: 'eab_hmac_key', eab_hmac_key: 'eab_key_id' },
    sensitive: ['eab_hmac_key'],
    oneOf: [['webroot', 'dns_script']],
    normalise: (body) => {
      if (Array.isArray(body.domains))
        body.domains = [...new Set(body.domains.map((name) => String(name).toLowerCase()))];
    },
  }),
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
      key: text('The private key of the certificate in PEM, without a passphrase', certificateKey),
      domains: list(
        'Names and addresses that the certificate must be valid for',
        formatted('A name or an address', domain),
      ),
      owner,
      group,
      mode: { ...mode, declared: mode.declared.meta({ description: 'Permissions of the certificate; default: 0644' }) },
      key_mode: keyMode,
      warn_before: integer(
        'Number of days before its expiry at which a certificate is reported as drift; default: 30',
        0,
        3650,
      ),
      ensure,
    },
    space: 'path',
    writes: ({ key_path }) => (typeof key_path === 'string' ? [key_path] : []),
    presentNeeds: ['certificate', 'key'],
    sensitive: ['key'],
    normalise: normaliseMode,
  }),
};
