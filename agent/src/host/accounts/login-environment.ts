import { readText } from '../read-system.ts';
import type { LoginAccount } from './login-account.ts';

/** Contents of the files that configure logins; null for a file that does not exist. */
export interface LoginFiles {
  readonly loginDefs: string | null;
  /** Files that set the machine's language, in order of precedence. */
  readonly locales: readonly (string | null)[];
}

export const readLoginFiles = (): LoginFiles => ({
  loginDefs: readText('/etc/login.defs'),
  locales: ['/etc/locale.conf', '/etc/default/locale'].map((path) => readText(path)),
});

/** Returns the environment of a login shell, which inherits nothing from this process. */
export function loginEnvironment(account: LoginAccount, shell: string, files: LoginFiles): Record<string, string> {
  return {
    HOME: account.home === '' ? '/' : account.home,
    USER: account.name,
    LOGNAME: account.name,
    SHELL: shell,
    PATH: searchPath(account.uid === 0, files.loginDefs ?? ''),
    TERM: 'xterm-256color',
    LANG: language(files.locales),
  };
}

/** Returns the search path that `su -l` would set. Values in login.defs may start with `PATH=`. */
function searchPath(isRoot: boolean, loginDefs: string): string {
  const setting = isRoot ? 'ENV_SUPATH|ENV_ROOTPATH' : 'ENV_PATH';
  const found = new RegExp(`^[ \\t]*(?:${setting})[ \\t]+"?(?:PATH=)?(/[^\\s"]*)`, 'm').exec(loginDefs)?.[1];
  if (found !== undefined) return found;
  return isRoot
    ? '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
    : '/usr/local/bin:/usr/bin:/bin:/usr/local/games:/usr/games';
}

/** Returns the machine's language if its encoding is UTF-8; otherwise, `C.UTF-8`. */
function language(locales: readonly (string | null)[]): string {
  for (const text of locales) {
    const found = /^\s*LANG=["']?([A-Za-z0-9_.@-]+)/m.exec(text ?? '')?.[1];
    if (found !== undefined && /utf-?8/i.test(found)) return found;
  }
  return 'C.UTF-8';
}
