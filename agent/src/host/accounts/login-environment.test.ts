import { describe, expect, test } from 'vitest';
import { loginEnvironment } from './login-environment.ts';

const ann = { name: 'ann', uid: 1000, gid: 1000, home: '/home/ann', shell: '/bin/sh' };
const root = { name: 'root', uid: 0, gid: 0, home: '/root', shell: '/bin/sh' };
const none = { loginDefs: null, locales: [null, null] };
const loginDefs = `
#ENV_PATH /no
# REQUIRED The default PATH settings, for superuser and normal users.
ENV_SUPATH	PATH=/opt/sbin:/usr/sbin:/sbin
ENV_PATH	PATH=/opt/bin:/usr/bin:/bin
UMASK 022
`;

describe('the environment of a login', () => {
  test('builds the login environment only from the account', () => {
    expect(Object.keys(loginEnvironment(ann, '/bin/zsh', none)).sort()).toEqual([
      'HOME',
      'LANG',
      'LOGNAME',
      'PATH',
      'SHELL',
      'TERM',
      'USER',
    ]);
    expect(loginEnvironment({ ...ann, home: '' }, '/bin/zsh', none)).toMatchObject({ HOME: '/', SHELL: '/bin/zsh' });
  });

  test.each([
    ['of a user', ann, loginDefs, '/opt/bin:/usr/bin:/bin'],
    ['of root', root, loginDefs, '/opt/sbin:/usr/sbin:/sbin'],
    ['of root by its other name', root, 'ENV_ROOTPATH /opt/sbin:/sbin', '/opt/sbin:/sbin'],
    ['in quotes', ann, 'ENV_PATH "PATH=/opt/bin"', '/opt/bin'],
    ['that is no path', ann, 'ENV_PATH bin', '/usr/local/bin:/usr/bin:/bin:/usr/local/games:/usr/games'],
    ['of users only', root, 'ENV_PATH /opt', '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'],
  ])('reads the search path from login.defs: %s', (_name, account, text, path) => {
    expect(loginEnvironment(account, '/bin/sh', { ...none, loginDefs: text }).PATH).toBe(path);
  });

  test.each([
    [['LANG=pl_PL.UTF-8\n', null], 'pl_PL.UTF-8'],
    [[null, '# of the installer\nLANG="de_DE.utf8"\n'], 'de_DE.utf8'],
    [['LANG=pl_PL.ISO-8859-2\n', null], 'C.UTF-8'],
    [['LANG=POSIX', 'LC_ALL=x'], 'C.UTF-8'],
  ])("uses the machine's language if its encoding is UTF-8: %j", (locales, language) => {
    expect(loginEnvironment(ann, '/bin/sh', { ...none, locales }).LANG).toBe(language);
  });
});
