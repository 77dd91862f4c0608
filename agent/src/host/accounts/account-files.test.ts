import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { readAccountFiles, readAccountSecrets, readGroupSecrets } from './account-files.ts';

let etc: string;
beforeEach(() => {
  etc = mkdtempSync(`${tmpdir()}/muster-etc-`);
});
afterEach(() => rmSync(etc, { recursive: true }));
const write = (name: string, text: string) => writeFileSync(`${etc}/${name}`, text);

test('reads complete entries, uses the first of two entries with the same name, and ignores NIS lines', () => {
  write(
    'passwd',
    'root:x:0:0:root:/root:/bin/bash\nann:x:1500:60:A. Nn,,,:/home/ann:/bin/sh\nann:x:7:7::/:/\n+@staff::::::\nbroken\n',
  );
  write('group', 'games:x:60:ann,root\nops:x:70:ann\nempty:x:71:\nalias:x:60:\n+:::\n');
  const files = readAccountFiles(etc);
  expect([...files.users.keys()]).toEqual(['root', 'ann']);
  expect(files.users.get('ann')).toEqual({
    name: 'ann',
    uid: 1500,
    gid: 60,
    comment: 'A. Nn,,,',
    home: '/home/ann',
    shell: '/bin/sh',
  });
  expect(files.groupsOf('ann')).toEqual(['games', 'ops']);
  expect(files.groups.get('empty')?.members).toEqual([]);
  expect(files.groups.get('games')?.members).toEqual(['ann', 'root']);
  expect(files.groupByGid(60)?.name).toBe('games');
  expect(files.groupByGid(61)).toBeNull();
  expect(files.usersWithGroup(60)).toEqual(['ann']);
});

test('reports the account sources other than files', () => {
  const sources = (line: string) => {
    write('nsswitch.conf', `# passwd: nis\n${line}\ngroup: ldap\n`);
    return readAccountFiles(etc).otherSources;
  };
  expect(sources('passwd:\tfiles systemd')).toEqual([]);
  expect(sources('passwd: files [NOTFOUND=continue] sss ldap # more')).toEqual(['sss', 'ldap']);
  rmSync(`${etc}/nsswitch.conf`);
  expect(readAccountFiles(etc).otherSources).toEqual([]);
});

test('throws an error for an unreadable file instead of reporting no accounts', () => {
  expect(readAccountFiles(etc).users.size).toBe(0);
  mkdirSync(`${etc}/passwd`);
  expect(() => readAccountFiles(etc)).toThrow(/cannot read .*passwd/);
});

test('reads the shadow entry and subordinate ID ranges of only one account', () => {
  write('shadow', 'root:*:1::::::\nann:$6$x:2:3:4:5:6:7:\n');
  write('subuid', 'root:1:2\nann:100000:65536\nann:300000:100\n');
  write('subgid', 'annabel:5:6\n');
  write('gshadow', 'games:*::ann\nops:$6$y:root,ann:\n');
  expect(readAccountSecrets('ann', etc)).toEqual({
    password: '$6$x',
    ageing: ['2', '3', '4', '5', '6', '7'],
    subordinateUids: [
      { first: 100000, count: 65536 },
      { first: 300000, count: 100 },
    ],
    subordinateGids: [],
  });
  expect(readAccountSecrets('nobody', etc).password).toBeNull();
  expect(readGroupSecrets('ops', etc)).toEqual({ password: '$6$y', administrators: ['root', 'ann'] });
});
