import { expect, test } from 'vitest';
import { capabilitiesIn, parseGetcap } from './capabilities.ts';

test('reads the output of getcap for any name of a file', () => {
  expect(parseGetcap('', '/srv/f')).toBe('');
  expect(parseGetcap('/srv/f cap_net_admin,cap_net_raw=ep\n', '/srv/f')).toBe('cap_net_admin,cap_net_raw=ep');
  expect(parseGetcap('/srv/f = cap_net_raw+ep\n', '/srv/f')).toBe('cap_net_raw+ep');
  expect(parseGetcap('/srv/f =\n', '/srv/f')).toBe('=');
  expect(parseGetcap('/srv/f cap_net_raw=ep [rootid=1000]\n', '/srv/f')).toBe('cap_net_raw=ep [rootid=1000]');
  const output = '/srv/a\nb cap_chown=ep\n cap_kill=i\n';
  expect(parseGetcap(output, '/srv/a\nb cap_chown=ep\n')).toBe('cap_kill=i');
  expect(parseGetcap(output, '/srv/a')).toBeNull();
  expect(parseGetcap('/srv/a\nb -r cap_kill=i\n', '/srv/a\nb -r')).toBe('cap_kill=i');
});

test('refuses output of another form', () => {
  for (const output of ['/srv/g cap_kill=ep\n', '/srv/f cap_kill=ep', '/srv/f -r\n', '/srv/f cap_kill=ep; x\n'])
    expect(parseGetcap(output, '/srv/f'), output).toBeNull();
});

test('lists each capability with its flags', () => {
  expect(capabilitiesIn('')).toEqual([]);
  expect(capabilitiesIn('=')).toEqual([]);
  expect(capabilitiesIn('cap_net_admin=ei cap_net_raw+ep')).toEqual(['cap_net_admin=ei', 'cap_net_raw=ep']);
  expect(capabilitiesIn('cap_net_admin,cap_net_raw+p cap_net_raw+e-p')).toEqual(['cap_net_admin=p', 'cap_net_raw=e']);
  expect(capabilitiesIn('=ep cap_chown-ep')).toEqual(['=ep']);
  expect(capabilitiesIn('cap_net_raw=ep [rootid=1000]')).toEqual(['[rootid=1000]', 'cap_net_raw=ep']);
});
