import { describe, expect, test } from 'vitest';
import { chooseShell, type TerminalSettings } from './shell-choice.ts';

const settings: TerminalSettings = {
  enabled: true,
  shell: '',
  allow_operator_shell_override: false,
  max_sessions: 1,
  user: '',
};
const programs = ['/bin/sh', '/bin/bash', '/opt/own-shell'];
const machine = { isProgram: (path: string) => programs.includes(path), listedShells: () => ['/bin/sh', '/bin/zsh'] };
const overridden = { ...settings, allow_operator_shell_override: true };

describe('the shell of a terminal', () => {
  test.each([
    ["the account's shell", '/bin/bash', settings, { shell: '/bin/bash' }],
    ["the system's default if the account has none", '', settings, { shell: '/bin/sh' }],
    ['the configured shell', '/bin/bash', { ...settings, shell: '/opt/own-shell' }, { shell: '/opt/own-shell' }],
  ])('chooses the shell of a terminal: %s', (_name, login, given, expected) => {
    expect(chooseShell(null, login, given, machine)).toEqual(expected);
  });

  test('chooses the requested shell if overrides are allowed and it is listed in /etc/shells', () => {
    expect(chooseShell('/bin/sh', '/bin/bash', overridden, machine)).toEqual({ shell: '/bin/sh' });
  });

  test.each([
    [
      'a request that the configuration does not allow',
      '/bin/sh',
      settings,
      'shell_refused',
      /allow_operator_shell_override/,
    ],
    ['an unlisted shell', '/opt/own-shell', overridden, 'shell_refused', /"\/opt\/own-shell".*\/bin\/sh/],
    ['a relative path', 'sh', overridden, 'shell_refused', /\/etc\/shells/],
    ['a listed shell that does not exist', '/bin/zsh', overridden, 'shell_refused', /not a program/],
    ['a configured shell that does not exist', null, { ...settings, shell: '/no' }, 'failed', /remote_terminal.shell/],
    ['a configured shell that is not a path', null, { ...settings, shell: 'bash' }, 'failed', /absolute/],
  ])('refuses a requested shell: %s', (_name, requested, given, code, message) => {
    const choice = chooseShell(requested, '/bin/bash', given, machine);
    expect(choice).toMatchObject({ code, message: expect.stringMatching(message) });
  });

  test('removes control characters from a refused shell in the message', () => {
    const choice = chooseShell('/bin/\u001b[2Jsh', '', overridden, machine);
    expect(JSON.stringify(choice)).not.toContain('\u001b');
    expect((choice as { message: string }).message).not.toContain('\u001b');
  });
});
