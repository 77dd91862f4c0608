import type { Subject } from './subject.ts';

const file = '/etc/ssh/ssh_known_hosts';
const key = (end: string) => `AAAAC3NzaC1lZDI1NTE5AAAAI${'A'.repeat(42)}${end}`;
const line = (names: string, end: string) => `${names} ssh-ed25519 ${key(end)}`;
const declared = (fields: object) => ({
  'known-host': { name: 'web.example', key_type: 'ssh-ed25519' as const, key: key('B'), ...fields },
});
/** Lines that Muster did not write: a comment, a hashed name, a certificate authority, and another type of key. */
const theirs = `# hosts\\n|1|c2FsdA==|aGFzaA== ssh-ed25519 ${key('C')}\\n@cert-authority ${line('web.example', 'C')}\\nweb.example ssh-rsa AAAA`;
const fileWith = (lines: string) => `mkdir -p /etc/ssh; printf '${lines}' > ${file}; chmod 640 ${file}`;

export const knownHostSubjects: readonly Subject[] = [
  {
    name: 'known-host, in a new file',
    prepare: 'mkdir -p /etc/ssh',
    desired: declared({ aliases: ['192.0.2.7', 'web'] }),
    changed: declared({ key: key('D') }),
    tamper: `sed -i 's/,web / /' ${file}`,
    moved: ['aliases'],
  },
  {
    name: 'known-host, in a new file, then absent',
    prepare: 'mkdir -p /etc/ssh',
    desired: declared({ name: '[2001:db8::1]:2222' }),
    changed: declared({ name: '[2001:db8::1]:2222', ensure: 'absent' }),
    tamper: `rm ${file}`,
    moved: ['ensure', 'key'],
  },
  {
    name: 'known-host, after other lines without a trailing line break',
    prepare: fileWith(theirs),
    desired: declared({ aliases: [] }),
    changed: declared({ aliases: ['web'] }),
    tamper: `sed -i '1i ${line('web.example', 'D')}' ${file}`,
    moved: ['key', 'lines'],
  },
  {
    name: 'known-host, previously with another key',
    prepare: fileWith(`${theirs}\\n${line('WEB.example,web', 'C')} root@web\\r\\n${line('db', 'C')}\\n`),
    desired: declared({}),
    changed: declared({ ensure: 'absent' }),
    tamper: `sed -i 's/${key('B')}/${key('D')}/' ${file}`,
    moved: ['key'],
  },
  {
    name: 'known-host, absent, previously with several lines',
    prepare: fileWith(`${line('web.example', 'B')}\\n${line('db', 'C')}\\n${line('web.example,web', 'C')}`),
    desired: declared({ ensure: 'absent' }),
    changed: declared({ aliases: [] }),
    tamper: `printf '\\n${line('web.example', 'D')}' >> ${file}`,
    moved: ['ensure', 'key'],
  },
];
