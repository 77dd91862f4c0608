import { describe, expect, it } from 'vitest';
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
  it.each([
    ['that of the account', '/bin/bash', settings, { shell: '/bin/bash' }],
    ["the system's own where the account has none", '', settings, { shell: '/bin/sh' }],
    ['that of the configuration', '/bin/bash', { ...settings, shell: '/opt/own-shell' }, { shell: '/opt/own-shell' }],
  ])('is %s', (_name, login, given, expected) => {
    expect(chooseShell(null, login, given, machine)).toEqual(expected);
  });

  it('is chosen by the operator where that is allowed, among those of /etc/shells', () => {
    expect(chooseShell('/bin/sh', '/bin/bash', overridden, machine)).toEqual({ shell: '/bin/sh' });
  });

  it.each([
    ['a choice where there is none', '/bin/sh', settings, 'shell_refused', /allow_operator_shell_override/],
    ['one that is not listed', '/opt/own-shell', overridden, 'shell_refused', /"\/opt\/own-shell".*\/bin\/sh/],
    ['a relative path', 'sh', overridden, 'shell_refused', /\/etc\/shells/],
    ['one that is listed and not there', '/bin/zsh', overridden, 'shell_refused', /not a program/],
    ['a configured one that is not there', null, { ...settings, shell: '/no' }, 'failed', /remote_terminal.shell/],
    ['a configured one that is no path', null, { ...settings, shell: 'bash' }, 'failed', /absolute/],
  ])('is refused: %s', (_name, wish, given, code, message) => {
    const choice = chooseShell(wish, '/bin/bash', given, machine);
    expect(choice).toMatchObject({ code, message: expect.stringMatching(message) });
  });

  it('shows what an operator asked for without what a terminal would obey', () => {
    const choice = chooseShell('/bin/\u001b[2Jsh', '', overridden, machine);
    expect(JSON.stringify(choice)).not.toContain('\u001b');
    expect((choice as { message: string }).message).not.toContain('\u001b');
  });
});
