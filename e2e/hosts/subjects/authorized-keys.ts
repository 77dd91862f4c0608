import type { Subject } from './subject.ts';

const key = `ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI${'A'.repeat(43)}`;
const other = `ssh-rsa AAAAB3NzaC1yc2E${'B'.repeat(40)}==`;
const declared = (fields: object) => ({ 'ssh-authorized-key': { user: 'ann', key, ...fields } });
const file = '/home/ann/.ssh/authorized_keys';
/** Returns shell text that creates a key file with these lines. */
const theirs = (lines: string) =>
  `useradd -m ann; mkdir -m 700 /home/ann/.ssh; printf '${lines}' > ${file}; chmod 640 ${file}; chown -R ann: /home/ann/.ssh`;

export const authorizedKeySubjects: Subject[] = [
  {
    name: 'ssh-authorized-key, in a new file',
    prepare: 'useradd -m ann',
    desired: declared({ comment: 'ci' }),
    changed: declared({ comment: 'deploy' }),
    tamper: `sed -i 's/ ci$/ by hand/' ${file}`,
    moved: ['comment'],
  },
  {
    name: 'ssh-authorized-key, after other keys and a missing newline',
    prepare: theirs(`# keys\\nrestrict ${other} bob`),
    desired: declared({ comment: 'ci' }),
    changed: declared({ comment: '' }),
    tamper: `sed -i 's/ ci$/ by hand/' ${file}`,
    moved: ['comment'],
  },
  {
    name: 'ssh-authorized-key, adopted',
    prepare: theirs(`no-pty,command="echo hi" ${key} old\\n# end\\n`),
    desired: declared({ comment: 'ci' }),
    changed: declared({ ensure: 'absent' }),
    tamper: `sed -i 's/ ci$/ by hand/' ${file}`,
    moved: ['comment'],
  },
];
