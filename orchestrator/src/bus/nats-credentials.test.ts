import { expect, test } from 'vitest';
import { credentialsIn } from './nats-credentials.ts';

const seed = `SU${'A2'.repeat(28)}`;
const creds = `-----BEGIN NATS USER JWT-----\nabc.def.ghi\n------END NATS USER JWT------\n
-----BEGIN USER NKEY SEED-----\n${seed}\n------END USER NKEY SEED------\n`;

test('reads a name with a password, the seed of an nkey, and a .creds file', () => {
  expect(credentialsIn('muster:a:b c\n', 'file')).toEqual({ kind: 'password', user: 'muster', password: 'a:b c' });
  expect(credentialsIn(`${seed}\n`, 'file')).toEqual({ kind: 'nkey', seed });
  expect(credentialsIn(creds, 'file')).toEqual({ kind: 'jwt', text: creds });
});

test.each([
  '',
  'secret',
  ':secret',
  'muster:',
  'one:two\nthree:four',
  `user:${'x'.repeat(70_000)}`,
  creds.slice(0, 60),
])('refuses %j, and names the file but not its content', (text) => {
  expect(() => credentialsIn(text, '/etc/muster/nats')).toThrow(
    'nats.credentials_file /etc/muster/nats must contain USER:PASSWORD, the seed of an nkey, or the content of a .creds file',
  );
});
